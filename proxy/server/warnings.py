"""What somebody should know: a log line and a count where nothing else writes one, and news for whoever delivers it.

Each is told once: of a budget once in a window, of all else when it begins.
"""

import asyncio
from hashlib import sha256
from typing import Final

from proxy.core.gatename import QUIET
from proxy.core.limits import Budget
from proxy.core.reconciliation import Span
from proxy.core.windows import Calendar
from proxy.errors import ProxyError
from proxy.observe.news import News
from proxy.server.budgets import named
from proxy.server.call import Call
from proxy.server.parts import Parts
from proxy.units import credit_text, instant_text

EVERY_S: Final = 1.0
"""How often accounts are asked; no call waits for it."""


def tell(parts: Parts) -> None:
    """Tell which shares of budgets were reached since the last time."""
    for one in parts.books.accounts.crossed():
        share = f"{one.share:g}"
        group = "/".join(one.group)
        spent, amount = credit_text(one.settled), credit_text(one.amount)
        parts.metrics.count("budget_warnings_total", one.budget.name, share)
        parts.log.note(
            "warning",
            "budget_warning",
            budget=one.budget.name,
            group=group or None,
            share=share,
            spent=spent,
            amount=amount,
            source=one.budget.source,
        )
        at_s = parts.wall()
        about = {"budget": one.budget.name, "group": group, "share": share, "spent": spent, "credits": amount}
        text = f"{named(one.budget, one.group)} came to {one.share:.0%}: {spent} of {amount} credits are spent."
        parts.news.tell(
            News(_id("budget_warning", one.budget, group, at_s, share), "budget_warning", at_s, text, about)
        )


def exhausted(call: Call, refused: ProxyError, parts: Parts) -> None:
    """A call was refused because a budget has too little left."""
    budget = next((one for one in parts.books.accounts.budgets if one.name == refused.data.get("limit")), None)
    if budget is None or call.team is None or call.match is None:
        return
    at_s, whose = parts.wall(), budget.group(call.facts_for_books)
    group = "/".join(whose)
    resets_at = "" if refused.resets_at_s is None else instant_text(refused.resets_at_s)
    left, amount = str(refused.data["left"]), str(refused.data["amount"])
    about = {"budget": budget.name, "group": group, "left": left, "credits": amount, "resets_at": resets_at}
    text = f"{named(budget, whose)} has {left} of {amount} credits left, and calls are refused" + (
        f" until {resets_at}." if resets_at else "."
    )
    parts.news.tell(News(_id("budget_exhausted", budget, group, at_s), "budget_exhausted", at_s, text, about))


def _id(kind: str, budget: Budget, group: str, at_s: float, share: str = "") -> str:
    """The same through one window; a sliding one counts as if it began anew each time it has slid by."""
    window = budget.window
    begun_s = window.window(at_s).start_s if isinstance(window, Calendar) else at_s // window.seconds * window.seconds
    return "/".join((kind, budget.name, group, share, f"{begun_s:.0f}"))


def drift(span: Span, parts: Parts) -> None:
    """Balance and ledger part."""
    amount = credit_text(span.drift)
    text = f"The gateway's balance fell by {amount} credits more than the ledger settled ({span.verdict.value})."
    about = {"verdict": span.verdict.value, "drift": amount, "balance": credit_text(span.last.balance)}
    name = f"ledger_drift/{span.verdict.value}/{span.last.at_s:.0f}"
    parts.news.tell(News(name, "ledger_drift", parts.wall(), text, about))


def policy_refused(found: list[str], parts: Parts) -> None:
    """The policy files have mistakes, and those from before stay."""
    digest = sha256("\n".join(found).encode("utf-8", "replace")).hexdigest()[:12]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    text = f"The policy files were refused, and those from before stay in force: {found[0]}{more}"
    parts.news.tell(
        News(
            f"policy_refused/{digest}/{parts.wall():.0f}",
            "policy_refused",
            parts.wall(),
            text,
            {"mistakes": str(len(found))},
        )
    )


async def watch(parts: Parts, *, every_s: float = EVERY_S) -> None:
    """Tell until cancelled."""
    refused = False
    while True:
        await asyncio.sleep(every_s)
        tell(parts)
        gates(parts)
        if parts.state.key_refused and not refused:
            text = "The gateway refused the proxy's own key: no call gets through until it is replaced."
            name = f"gateway_key_refused/{parts.wall():.0f}"
            parts.news.tell(News(name, "gateway_key_refused", parts.wall(), text))
        refused = parts.state.key_refused


WHY: Final = {
    "429": "the gateway asked for a pause",
    "told": "the gateway said until when",
    "maintenance": "the gateway is under maintenance",
    "fails": "it failed again and again",
    "still_fails": "the call that looked failed too",
    "answered": "a call was answered",
}
"""Why a part of the gateway is left alone, or not any more."""


def gates(parts: Parts) -> None:
    """Tell which parts of the gateway are left alone from now on, and which are not any more."""
    for change in parts.queue.scheduler.gates.changes():
        what = change.name.told
        if change.until_s is None:
            parts.log.note("info", "breaker_closed", what=what, why=WHY[change.why])
            continue
        left_s = max(0.0, change.until_s - parts.queue.now_s())
        at_s = parts.wall()
        until = instant_text(at_s + left_s)
        event = "gateway_pause" if change.name.kind in QUIET else "breaker_open"
        parts.log.note("warning", event, what=what, why=WHY[change.why], for_s=round(left_s, 1), until=until)
        if event == "breaker_open" and change.why != "still_fails":
            text = f"{what} of the gateway is left alone until {until}: {WHY[change.why]}."
            parts.news.tell(
                News(f"breaker_open/{what}/{at_s:.0f}", "breaker_open", at_s, text, {"what": what, "until": until})
            )


def latched(call: Call, for_s: float, parts: Parts) -> None:
    """The gateway refused a call for want of credits: calls that may cost as much are not sent for a while."""
    assert call.hold is not None
    parts.log.note(
        "warning", "credits_latch", id=call.id, ceiling=credit_text(call.hold.credits), for_s=for_s,
        until=instant_text(parts.wall() + for_s),
    )  # fmt: skip
