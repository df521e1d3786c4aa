"""The stages every request passes, in order. Each has its room; here they are only listed and run.

A stage returns None to pass the request on, or the answer that ends it; where it may wait it is a coroutine. Whatever
happens, the exchange of a request has an ending and the request is recorded.
"""

from collections.abc import Callable, Coroutine, Generator
from types import CoroutineType, coroutine
from typing import Final, cast

from aiohttp import web

from proxy.core.charges import Ending
from proxy.errors import ProxyError
from proxy.mcp import merged as merged_server
from proxy.mcp import mirroring
from proxy.server import (
    admit,
    decide,
    hits,
    idempotency,
    identify,
    learning,
    normalise,
    owning,
    recall,
    receive,
    record,
    relay,
    replies,
    send,
)
from proxy.server.call import Call
from proxy.server.ids import request_id
from proxy.server.inbound import Inbound
from proxy.server.parts import Parts

_CALLER_LEFT: Final = Ending.CALLER_LEFT
"""Bound once: looking a member up in its enum takes as long as a call."""

Passed = web.StreamResponse | None
Waits = Coroutine[None, None, Passed]
Stage = Callable[[Call, Parts], Passed | Waits]


def merged(call: Call, parts: Parts) -> Waits | None:
    """The server of all suites answers what is asked of it, and makes a call one of the suite it is for."""
    if call.match is None or call.match.route.name != "merged":
        return None
    return merged_server.answer(call, parts, _within)


def mirrored(call: Call, parts: Parts) -> Waits | None:
    """A header that contradicts the arguments of a tool's call ends it."""
    return mirroring.refusal(call, parts, _within) if call.mcp is not None else None


# fmt: off
STAGES: Final[tuple[tuple[str, Stage], ...]] = (
    ("receive",   receive.head),
    ("identify",  identify.identify),
    ("receive",   receive.body),
    ("recall",    recall.at_once),
    ("normalise", merged),
    ("normalise", normalise.normalise),
    ("decide",    decide.decide),
    ("decide",    mirrored),
    ("recall",    idempotency.recalled),
    ("recall",    recall.recall),
    ("admit",     admit.admit),
    ("send",      send.send),
    ("relay",     relay.relay),
)
# fmt: on

_ORDER: Final = tuple(stage for _, stage in STAGES)

_TOGETHER: Final = (decide.decide, admit.admit, relay.relay)
"""Stages that a request begins in the loop's next turn, so that those that came together go through each part together.

What a part needs is in the processor's caches then, from one request to the next.
"""

Way = tuple[tuple[str, Stage, bool], ...]
"""What is left of the stages, and whether each of them begins in the loop's next turn."""

_ALL: Final[Way] = tuple((name, stage, stage in _TOGETHER) for name, stage in STAGES)

_KNOWN: Final = _ALL[_ORDER.index(normalise.normalise) :]
"""The way of a call that one on its way makes in its caller's name."""
_AGAIN: Final = _ALL[_ORDER.index(recall.recall) :]
"""The way of a call that joined another one in vain."""


def answer(inbound: Inbound, parts: Parts) -> Coroutine[None, None, web.StreamResponse]:
    """Take one request through the stages; its exchange settles by itself, then the request is recorded."""
    asked = inbound.header("x-request-id")
    name = request_id(asked)
    call = Call(name, inbound, parts.state.policy, parts.wall(), name is asked)
    return _within(call, parts, _ALL)


async def _within(call: Call, parts: Parts, way: Way = _KNOWN) -> web.StreamResponse:
    record.began(parts)
    parts.active.came()
    response = None
    try:
        response = await _through(call, parts, way)
        return response
    finally:
        try:
            _let_go(call, parts)
            if call.mcp is not None:
                parts.cancelling.ended(call, parts.wall())
            if call.promised is not None:
                await idempotency.finish(call, response, parts)
        finally:
            parts.active.went()
            call.inbound.finished()
            record.soon(call, parts)


def _let_go(call: Call, parts: Parts) -> None:
    """Whatever happened, the exchange comes to its end: here, or in its own task where others read it too."""
    if call.slot is not None:
        call.slot.give_up()
    if call.source is None:
        return
    if call.shared:
        call.source.leave()
    else:
        call.source.exchange.end(_CALLER_LEFT)
    if call.owns is not None:
        owning.tell_usage(call.source.exchange.meter, parts)
    learning.learn(call, parts)


@coroutine
def _next_turn() -> Generator[None, None, None]:
    """Go on in the loop's next turn."""
    yield


async def _through(call: Call, parts: Parts, way: Way) -> web.StreamResponse:
    response = None
    try:
        for name, stage, next_turn in way:
            call.stage = name
            if next_turn:
                await _next_turn()
            passed = stage(call, parts)
            if passed is not None:
                response = (await passed) if isinstance(passed, CoroutineType) else cast("Passed", passed)
                if response is not None:
                    break
    except recall.Anew:
        recall.begin_anew(call)
        return await _through(call, parts, _AGAIN)
    except ProxyError as refused:
        if call.stale is not None and refused.reason.name in _FAILURES:
            return hits.serve(call, parts, call.stale)
        return replies.refusal(call, refused, parts)
    except ConnectionError:
        if call.taken_back and call.source is None:
            return replies.taken_back(call, parts)
        # The caller left in the middle of its answer; there is nobody to tell.
        raise
    except Exception as fault:  # noqa: BLE001  (the last line: a fault of ours is one request's, not the process's)
        return replies.fault(call, fault, parts)
    assert response is not None, "the last stage always answers"
    return response


_FAILURES: Final = frozenset({"upstream_unreachable", "upstream_broken", "upstream_timeout"})
"""Reasons for which a stored answer that is too old is better than none."""
