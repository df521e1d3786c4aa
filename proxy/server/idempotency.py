"""Calls with an `Idempotency-Key`: one of them is sent, the others get its answer or hear why not.

That a call is about to be sent is committed with its hold, and its answer before the caller has all of it. So after a
crash the outcome of a key is either known or said to be unknown; nothing is sent twice.
"""

from collections.abc import Coroutine, Mapping
from typing import Final

from aiohttp import web

from proxy.config.settings import Credential
from proxy.core.charges import Ending
from proxy.core.idempotency import Fate, Verdict, digest_of, fate, is_key, judge
from proxy.core.riders import Keep, Release
from proxy.errors import ProxyError
from proxy.server import replies
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.server.promises import Promised, mismatch
from proxy.units import Credits, credit_text

HEADER: Final = "idempotency-key"
REPLAYED: Final = "Idempotency-Replayed"

_CONTENT: Final = frozenset({"content-type", "content-disposition", "x-model", "x-music-structure"})
"""Header lines that belong to the bytes of an answer."""

_LOST: Final[Mapping[Verdict, str]] = {
    Verdict.UNKNOWN: "A call with this Idempotency-Key was sent before, and its answer is not known here: the call was "
    "cut short or the proxy stopped. It may have been charged. It is not sent again; use a new key to do so.",
    Verdict.TOO_LONG: "A call with this Idempotency-Key was answered before, and the answer was too long to keep. It "
    "is not sent again; use a new key to do so.",
}


def recalled(call: Call, parts: Parts) -> Coroutine[None, None, web.StreamResponse | None] | None:
    """The answer that the call's key had; None for a call to send. Raises ProxyError."""
    key = call.inbound.header(HEADER)
    return None if key is None or call.hold is None else _recalled(call, key, parts)


async def _recalled(call: Call, key: str, parts: Parts) -> web.StreamResponse | None:
    assert call.team is not None
    assert call.out is not None
    assert call.facts is not None
    if not is_key(key):
        raise ProxyError("bad_request", "An Idempotency-Key is 1 to 255 visible ASCII characters.")
    scope = call.team.name
    if parts.settings.credential is Credential.CALLER:
        # Callers of one team need not know each other here.
        scope = f"{scope}/{call.key_id}"
    promised = Promised(scope, key, digest_of(call.out.target, call.digest))
    parts.promises.claim(promised)
    call.promised = promised
    kept = await parts.books.outcome(scope, key)
    verdict = judge(kept, promised.digest, parts.wall())
    if verdict is Verdict.NEW:
        return None
    if verdict is Verdict.MISMATCH:
        raise mismatch()
    if (lost := _LOST.get(verdict)) is not None:
        raise ProxyError("idempotency_lost", lost, headers={"x-should-retry": "false"})
    assert kept is not None
    assert kept.keep is not None
    return _replay(call, kept.keep, parts)


def _replay(call: Call, kept: Keep, parts: Parts) -> web.Response:
    assert kept.body is not None
    call.ending, call.hold, call.held = Ending.HIT, None, Credits(0)
    headers = {**replies.our_headers(call, parts, known_charge=False), **dict(kept.headers), REPLAYED: "true"}
    return replies.respond(call, parts, kept.status, kept.body, headers)


async def finish(call: Call, response: web.StreamResponse | None, parts: Parts) -> None:
    """The call has ended: keep its answer, let go of its key, or leave it as one whose outcome is not known.

    response: what the caller was answered, None when it left. The exchange has its ending.
    """
    promised = call.promised
    assert promised is not None
    try:
        if promised.committed:
            await _finish(call, promised, response or promised.response, parts)
    finally:
        parts.promises.done(promised)


async def _finish(call: Call, promised: Promised, response: web.StreamResponse | None, parts: Parts) -> None:
    exchange = call.source.exchange if call.source is not None else None
    ending = None if exchange is None else exchange.ending
    is_call = call.hold is not None and call.hold.is_call
    match fate(ending, whole=_is_whole(call, response), is_call=is_call):
        case Fate.RELEASE:
            await parts.books.keep([Release(promised.scope, promised.key, parts.wall())])
        case Fate.KEEP:
            assert response is not None
            if isinstance(response, web.Response) and isinstance(response.body, bytes):
                promised.recording.add(response.body)
            await parts.books.keep([_kept(call, promised, response, parts.wall())])


def _is_whole(call: Call, response: web.StreamResponse | None) -> bool:
    if response is None or not 200 <= response.status < 300 or call.source is None:
        return False
    if isinstance(response, web.Response):
        return True
    exchange = call.source.exchange
    return exchange.ending is Ending.ANSWERED if exchange.meter is None else exchange.meter.terminal


def _kept(call: Call, promised: Promised, response: web.StreamResponse, at_s: float) -> Keep:
    assert call.source is not None
    saved = credit_text(call.source.exchange.charge.credits)
    lines = [(name, value) for name, value in response.headers.items() if name.lower() in _CONTENT]
    lines.append(("X-Sluicegate-Credits", f"charged=0, saved={saved}"))
    return Keep(promised.scope, promised.key, response.status, tuple(lines), promised.recording.body, at_s)
