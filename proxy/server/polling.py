"""The proxy's own questions after operations: seldom, so that work nobody asks after any more still gets its charge.

An operation is asked after when nobody else has for a while, and once more before it expires at its hold.
"""

import asyncio
from typing import Final
from urllib.parse import quote

from proxy.config.settings import Credential
from proxy.core.operations import Operation
from proxy.errors import ProxyError
from proxy.server import owning
from proxy.server.admit import FAMILIES
from proxy.server.asking import our_turn
from proxy.server.exchange import Exchange
from proxy.server.normalise import our_own
from proxy.server.parts import Parts
from proxy.server.routes import ROUTE, Match, upstream_target
from proxy.server.upstream import Outgoing, UpstreamFault

TICK_S: Final = 1.0
"""How often open operations are looked through; nothing goes out for that."""

AT_ONCE: Final = 4
"""Questions under way at once."""

ANSWER_MAX_S: Final = 30.0
"""Longest wait for the answer to one question."""


async def watch(parts: Parts, *, tick_s: float = TICK_S) -> None:
    """Ask after operations that are due, until cancelled."""
    while True:
        await asyncio.sleep(tick_s)
        if not parts.state.draining:
            await look(parts)


async def look(parts: Parts) -> None:
    """Ask after the operations that are due now, and end those that have expired."""
    due = parts.operations.due(parts.wall())
    for at in range(0, len(due), AT_ONCE):
        some = [one for one in due[at : at + AT_ONCE] if one.id in parts.operations]
        await asyncio.gather(*(_ask(operation, parts) for operation in some))


async def _ask(operation: Operation, parts: Parts) -> None:
    # Put off first: a question without an answer must not be asked again at once.
    parts.operations.ask(operation)
    if parts.settings.credential is Credential.PROXY and parts.state.gateway_key is not None:
        # Where callers bring their own gateway keys, nobody but them can ask.
        await _poll(operation, parts)
    if parts.wall() - operation.begun_s > parts.state.policy.expires_after_s:
        parts.operations.expire(operation)


async def _poll(operation: Operation, parts: Parts) -> None:
    try:
        turn = await our_turn(operation.kind, parts)
    except ProxyError:
        return  # Others need every turn; the question is asked again later.
    exchange = Exchange(parts.exchanges, _question(operation, parts), FAMILIES[operation.kind], None, turn)
    try:
        async with asyncio.timeout(ANSWER_MAX_S):
            answer = await exchange.open()
            while await exchange.read():
                pass
    except (UpstreamFault, TimeoutError) as fault:
        parts.metrics.count("upstream_errors_total", operation.kind, _REASONS.get(type(fault), "upstream_broken"))
        return
    if answer.status >= 300:
        parts.metrics.count("upstream_errors_total", operation.kind, str(answer.status))
    elif exchange.meter is not None and exchange.meter.terminal:
        parts.operations.polled(operation.id, exchange.meter)
        owning.tell_usage(exchange.meter, parts)


_REASONS: Final[dict[type[BaseException], str]] = {TimeoutError: "upstream_timeout"}


def _question(operation: Operation, parts: Parts) -> Outgoing:
    route = ROUTE[operation.kind]
    asks_model = operation.kind != "response" and operation.model is not None
    query = f"model={quote(operation.model or '', safe='')}" if asks_model else ""
    match = Match(route, {"id": quote(operation.id, safe="/:")}, query)
    target = upstream_target(match, segment=parts.settings.native_segment)
    return Outgoing(route.method, target, our_own(parts), b"", parts.new_id())
