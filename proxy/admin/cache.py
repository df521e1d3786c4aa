"""The cache for whoever keeps it: what is stored, and taking some of it away."""

from typing import Any, Final

from proxy.admin.call import Asked, Refused
from proxy.core.instants import ago
from proxy.server.parts import Parts
from proxy.stores.cache.contract import Which
from proxy.units import credit_text, instant_text

LISTED_MAX: Final = 1000


async def stats(_: Asked, parts: Parts) -> dict[str, Any]:
    """Figures of the file."""
    await parts.cache.written()
    said = parts.cache.stats
    return {
        "entries": said.entries,
        "bytes": said.bytes,
        "limit_bytes": said.limit_bytes,
        "evicted": said.evicted,
        "expired": said.expired,
        "faults": said.faults,
    }


async def entries(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Query: count, at most `LISTED_MAX`. The largest first; never what was asked or answered. Raises Refused."""
    count = asked.query.get("count", "50")
    if not count.isdecimal() or not 1 <= int(count) <= LISTED_MAX:
        raise Refused(400, f"count: expected a number from 1 to {LISTED_MAX}")
    await parts.cache.written()
    return {
        "entries": [
            {
                "key": entry.key.hex()[:16],
                "team": entry.scope or None,
                "route": entry.route,
                "model": entry.model or None,
                "bytes": entry.size,
                "stored_at": instant_text(entry.stored_s),
                "saves": credit_text(entry.credits),
            }
            for entry in await parts.cache.largest(int(count))
        ]
    }


async def purge(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Body: team, model, route, older_than (a span or a day); with none of them, all: true. Raises Refused."""
    older = asked.text_or_none("older_than")
    try:
        older_than_s = None if older is None else ago(older, parts.wall())
    except ValueError as error:
        raise Refused(400, f"older_than: {error}") from error
    which = Which(asked.text_or_none("team"), asked.text_or_none("model"), asked.text_or_none("route"), older_than_s)
    if which == Which() and asked.body.get("all") is not True:
        raise Refused(400, "say which answers: team, model, route, older_than, or all")
    return {"purged": await parts.cache.purge(which)}
