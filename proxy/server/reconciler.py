"""Compares the fall of the gateway's balance with what the ledger settled, seldom, and changes no account."""

import asyncio
import json
from decimal import Decimal
from typing import Any, Final

from proxy.config.settings import Credential
from proxy.core.reconciliation import Reading, Span, Verdict, looked
from proxy.errors import ProxyError
from proxy.observe.metrics import Metrics
from proxy.server import warnings
from proxy.server.asking import our_turn
from proxy.server.exchange import Exchange
from proxy.server.normalise import our_own
from proxy.server.parts import Parts
from proxy.server.routes import ROUTE, Match, upstream_target
from proxy.server.upstream import Outgoing, UpstreamFault
from proxy.units import CREDIT, Credits, credit_text, credits_of

ANSWER_MAX: Final = 65_536
"""Bytes of an answer about a balance."""


class BalanceUnknown(Exception):
    """The gateway did not tell the balance; the message says why."""


async def look(parts: Parts, *, anew: bool = False) -> Span:
    """Ask for the balance and compare; raises BalanceUnknown. anew: begin a new span."""
    before = parts.books.settled
    balance = await _balance(parts)
    # What settles while the gateway answers may be on either side of it, so it counts as held.
    held = parts.books.held + parts.books.settled - before
    was = parts.spans.span
    span = looked(None if anew else was, Reading(parts.wall(), balance, before, held))
    await asyncio.to_thread(parts.spans.keep, span)
    gauge(span, parts.metrics)
    if span.verdict is not Verdict.AGREES and (was is None or was.verdict is not span.verdict):
        drift = credit_text(span.drift)
        parts.log.note("warning", "ledger_drift", verdict=span.verdict.value, drift=drift)
        warnings.drift(span, parts)
    return span


def gauge(span: Span | None, metrics: Metrics) -> None:
    """Show a comparison; a balance that nobody asked for is not 0, so then there is none."""
    metrics.replace("upstream_balance_credits", {} if span is None else {(): span.last.balance / CREDIT})
    metrics.replace("ledger_drift_credits", {} if span is None else {(): span.drift / CREDIT})


async def watch(parts: Parts) -> None:
    """Look now and then until cancelled; callers that bring their own gateway keys have balances of their own."""
    every_s = parts.settings.reconcile_every
    while every_s and parts.settings.credential is Credential.PROXY:
        await asyncio.sleep(every_s)
        try:
            await look(parts)
        except BalanceUnknown as error:
            parts.log.note("warning", "balance_unknown", why=str(error))


async def _balance(parts: Parts) -> Credits:
    if parts.settings.credential is not Credential.PROXY:
        raise BalanceUnknown("callers bring their own gateway keys, and each has a balance of its own")
    key = parts.state.gateway_key
    if key is None or parts.settings.upstream is None:
        raise BalanceUnknown("there is no gateway, or no key for it; give --upstream and --upstream-key-file")
    target = upstream_target(Match(ROUTE["credits"], {}, ""), segment=parts.settings.native_segment)
    out = Outgoing("GET", target, our_own(parts), b"", parts.new_id())
    try:
        turn = await our_turn("credits", parts)
    except ProxyError as error:
        raise BalanceUnknown(error.message) from error
    exchange = Exchange(parts.exchanges, out, None, None, turn)
    try:
        answer = await exchange.open()
        body = b""
        while piece := await exchange.read():
            body += piece
            if len(body) > ANSWER_MAX:
                exchange.abandon()
                raise BalanceUnknown("the answer about the balance is too long")
    except UpstreamFault as fault:
        raise BalanceUnknown(str(fault)) from fault
    if answer.status != 200:
        raise BalanceUnknown(f"the gateway answers {answer.status} when it is asked for the balance")
    return _read(body, parts.settings.balance_field)


def _read(body: bytes, field: str) -> Credits:
    """The balance in an answer, by the setting's name of it."""
    try:
        value: Any = json.loads(body, parse_float=Decimal)
        for name in field.split("."):
            value = value[name]
        return credits_of(value)
    except (ValueError, KeyError, TypeError) as error:
        raise BalanceUnknown(f"the gateway's answer has no balance in {field!r}; see --balance-field") from error
