"""What was spent, kept apart by what is asked."""

from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from proxy.admin.call import Asked, Refused
from proxy.core.instants import ago
from proxy.core.spending import By, spending
from proxy.server.parts import Parts
from proxy.units import credit_text, instant_text

SINCE: Final = "30d"


async def show(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Query: by (words with commas), since (a span or a day), timezone of days. Raises Refused."""
    zone = _zone(asked.query.get("timezone", "UTC"))
    by = _by(asked.query.get("by", "team"))
    try:
        since_s = ago(asked.query.get("since", SINCE), parts.wall(), zone)
    except ValueError as error:
        raise Refused(400, f"since: {error}") from error
    parts.books.store.push()
    rows = spending(await parts.books.store.totals(since_s), by, zone)
    names = [one.value for one in by]
    return {
        "since": instant_text(since_s),
        "by": names,
        "rows": [
            {
                **dict(zip(names, row.words, strict=True)),
                "credits": credit_text(row.credits),
                "tool_calls": row.calls,
            }
            for row in rows
        ],
        "credits": credit_text(sum(row.credits for row in rows)),
    }


def _by(text: str) -> list[By]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    known = {one.value: one for one in By}
    for word in words:
        if word not in known:
            raise Refused(400, f"by: {word!r} is not one of {', '.join(known)}")
    return [known[word] for word in dict.fromkeys(words)]


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Refused(400, f"{name!r} is no time zone, such as Asia/Seoul") from error
