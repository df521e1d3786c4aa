"""The gateway's balance beside the ledger."""

from typing import Any

from proxy.admin import ledger
from proxy.admin.call import Asked, Refused
from proxy.core.reconciliation import Span
from proxy.server.parts import Parts
from proxy.server.reconciler import BalanceUnknown, look
from proxy.units import credit_text, instant_text


async def show(asked: Asked, parts: Parts) -> dict[str, Any]:
    """How the comparison stood when it was last made."""
    return await _told(parts.spans.span, asked, parts)


async def compare(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Ask the gateway now and compare. Body: anew, to begin a new span. Raises Refused."""
    try:
        span = await look(parts, anew=asked.body.get("anew") is True)
    except BalanceUnknown as error:
        raise Refused(502, f"the balance is not known: {error}") from error
    return await _told(span, asked, parts)


async def _told(span: Span | None, asked: Asked, parts: Parts) -> dict[str, Any]:
    doubts = await ledger.doubts(asked, parts)
    if span is None:
        return {"compared": False, **doubts}
    return {
        "compared": True,
        "since": instant_text(span.first.at_s),
        "until": instant_text(span.last.at_s),
        "balance": credit_text(span.last.balance),
        "fell": credit_text(span.fall),
        "put_on": credit_text(span.added),
        "settled": credit_text(span.settled),
        "drift": credit_text(span.drift),
        "held_now": credit_text(span.last.held),
        "foreign": credit_text(span.foreign),
        "verdict": span.verdict.value,
        **doubts,
    }
