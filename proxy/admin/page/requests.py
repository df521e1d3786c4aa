"""The last requests, newest first, with what was decided about each and why; never a body."""

from typing import Any, Final

from proxy.admin.call import Asked, Refused
from proxy.admin.page.frame import Page, Row, choices, section, table, team_link
from proxy.admin.page.markup import Html, tag, text
from proxy.admin.page.words import amount, charged_by, instant, span
from proxy.errors import REASONS
from proxy.observe.recent import Seen
from proxy.server.parts import Parts
from proxy.units import instant_text

SHOWN: Final = 100
FILTERS: Final = ("team", "route", "status", "ending", "reason", "cache")


async def read(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Query: after (a number), and a word for each of `FILTERS`. Raises Refused."""
    after = asked.query.get("after", "0")
    if not after.isascii() or not after.isdigit():
        raise Refused(400, "after is not a whole number")
    wanted = {name: asked.query.get(name, "") for name in FILTERS}
    everything = parts.recent.since()
    found = parts.recent.since(int(after), **wanted)
    words = {name: sorted({str(seen.story[name]) for seen in everything if name in seen.story}) for name in FILTERS}
    refused = sum(1 for seen in found if seen.story.get("reason"))
    return {
        "at": instant_text(parts.wall()),
        "sentence": f"{len(found)} of the last {len(everything)} requests; the proxy refused {refused} of them.",
        "filters": wanted,
        "words": words,
        "requests": [request_row(seen) for seen in found[:SHOWN]],
    }


def request_row(seen: Seen) -> dict[str, Any]:
    """One request for JSON: its story, when it ended, and the reason in a sentence."""
    return {"number": seen.number, "at": instant_text(seen.at_s), "at_s": seen.at_s, **seen.story, "why": _why(seen)}


def _why(seen: Seen) -> str:
    """The reason of what was decided, in a sentence."""
    story = seen.story
    if "why" in story:
        return str(story["why"])
    if reason := story.get("reason"):
        return REASONS[reason].help if reason in REASONS else str(reason)
    if story.get("cache") in ("hit", "stale", "collapsed"):
        return _CACHE[str(story["cache"])]
    detail = story.get("cache_status")
    return f"not kept: {detail}" if detail else ""


_CACHE: Final = {
    "hit": "The stored answer, free of charge.",
    "stale": "An old stored answer, as the gateway failed.",
    "collapsed": "Joined an identical call on its way.",
}


def show(said: dict[str, Any], now_s: float) -> Page:
    chosen = said["filters"]
    fields = (choices(name, name, said["words"][name], chosen[name]) for name in FILTERS)
    form = tag("form", fields, tag("p", tag("button", "Show", type="submit")), method="get", action="/requests")
    rows = requests_table("requests-rows", said["requests"], now_s)
    return Page(
        "Requests", said["sentence"], text(section("Filter", form), section("Last requests", rows)), "/requests"
    )


def requests_table(name: str, rows: list[dict[str, Any]], now_s: float) -> Html:
    """Requests as a table. name: its id."""
    head = [
        "when",
        "team",
        "route",
        "model",
        "status",
        "ended",
        "cache",
        "held",
        "charged",
        "waited",
        "took",
        "why",
        "id",
    ]
    says = "Requests, the newest first; the stage is where a refusal came from"
    return table(name, says, head, (_row(one, now_s) for one in rows), (7, 8, 9, 10))


def _charged(one: dict[str, Any]) -> Html | str:
    """The charge; what it was computed from and where its price stands is told to who points at it."""
    shown = amount(one.get("charged"))
    by = charged_by(one.get("basis"), one.get("place"))
    return tag("span", shown, title=by) if by else shown


def _row(one: dict[str, Any], now_s: float) -> Row:
    waited = f"{one['waited_s']:.2f} s" if one.get("waited_s") else "–"
    took = f"{one['dur_s']:.3f} s" if one["dur_s"] < 10 else span(one["dur_s"])
    reason = (
        [one["why"], tag("span", f" ({one['reason']}, {one['stage']})", class_="aside")]
        if one.get("reason")
        else one["why"]
    )
    cells = [
        instant(one["at"], max(now_s, one["at_s"] + 1)),
        team_link(one.get("team")),
        one.get("route", "–"),
        one.get("model", "–"),
        one["status"] or 499,
        one.get("ending", "–").replace("_", " "),
        one.get("cache", "–"),
        amount(one.get("held")),
        _charged(one),
        waited,
        took,
        text(reason),
        tag("code", one["id"], class_="place"),
    ]
    return Row(cells, "refused" if one.get("reason") or one["status"] >= 400 else "")
