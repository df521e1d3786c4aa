"""The cache: how much of what was asked it answered, what that saved, and what it holds."""

from typing import Any, Final

from proxy.admin import cache
from proxy.admin.call import Asked
from proxy.admin.page.charts import meter
from proxy.admin.page.frame import Page, Row, facts, section, table, team_link
from proxy.admin.page.markup import text
from proxy.admin.page.words import amount, instant, number, size
from proxy.server.parts import Parts
from proxy.units import instant_text

RESULTS: Final = ("hit", "stale", "collapsed", "miss", "uncacheable", "bypass")


async def read(_: Asked, parts: Parts) -> dict[str, Any]:
    """Figures of this process, and the largest entries of the file."""
    results = {word: parts.metrics.total("cache_requests_total", result=word) for word in RESULTS}
    given = sum(results[word] for word in ("hit", "stale", "collapsed"))
    could = given + results["miss"]
    share = given / could if could else 0.0
    saved = f"{parts.metrics.total('saved_credits_total'):.8f}"
    stored = await cache.stats(Asked(), parts)
    largest = await cache.entries(Asked(query={"count": "20"}), parts)
    said = f"{share:.0%} of what may be kept was answered from the cache; {amount(saved)} credits were saved."
    return {
        "at": instant_text(parts.wall()),
        "sentence": said if could else "Nothing that may be kept was asked yet.",
        "share": round(share, 4),
        "saved": saved,
        "results": results,
        "stored": stored,
        "largest": largest["entries"],
    }


def show(said: dict[str, Any], now_s: float) -> Page:
    stored = said["stored"]
    full = stored["bytes"] / stored["limit_bytes"] if stored["limit_bytes"] else 0.0
    counts = {word: number(said["results"][word]) for word in RESULTS}
    room = {
        "answers": number(stored["entries"]),
        "room": text(f"{size(stored['bytes'])} of {size(stored['limit_bytes'])} ", meter(full, f"{full:.0%} full")),
        "let go for room": number(stored["evicted"]),
        "let go as too old": number(stored["expired"]),
        "faults": number(stored["faults"]),
    }
    rows = (
        Row(
            [
                team_link(one["team"]) if one["team"] else "shared",
                one["route"],
                one["model"] or "–",
                size(one["bytes"]),
                amount(one["saves"]),
                instant(one["stored_at"], now_s),
            ]
        )
        for one in said["largest"]
    )
    head = ["team", "route", "model", "size", "saves each time", "stored"]
    body = text(
        section("Calls since the start", facts(counts, "results")),
        section("Stored", facts(room, "room")),
        section("Largest answers", table("largest", "The largest stored answers", head, rows, (3, 4))),
    )
    return Page("Cache", said["sentence"], body, "/cache")
