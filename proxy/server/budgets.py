"""What callers are told about budgets: the refusal that names one, and the list of a team's own."""

from math import inf
from typing import Any

from proxy.core.accounts import Accounts, Refusal, Why
from proxy.core.facts import Facts
from proxy.core.limits import drawn
from proxy.core.windows import Calendar
from proxy.errors import ProxyError
from proxy.units import credit_text, instant_text

_REASONS = {Why.NEVER: "request_over_budget", Why.EXHAUSTED: "budget_exhausted", Why.BUSY: "budget_busy"}


def over_budget(refusal: Refusal) -> ProxyError:
    """The error that names the budget, what is left, what was asked and when it reopens."""
    left = max(0, refusal.amount - refusal.settled - refusal.held)
    whose = f" of {'/'.join(refusal.group)}" if refusal.group else ""
    name = f"The budget {refusal.budget.name}{whose}"
    most = f"this call may cost up to {credit_text(refusal.asked)}"
    reopens = f" It reopens at {instant_text(refusal.reopens_s)}." if refusal.reopens_s is not None else ""
    sentence = {
        Why.NEVER: f"{name} is {credit_text(refusal.amount)} credits in all and {most}; ask for less output.",
        Why.EXHAUSTED: f"{name} has {credit_text(left)} of {credit_text(refusal.amount)} credits left and {most}."
        f"{reopens}",
        Why.BUSY: f"{name} has {credit_text(left)} credits free while other calls run and {most}; try again soon.",
    }[refusal.why]
    figures: dict[str, Any] = {
        "limit": refusal.budget.name,
        "amount": credit_text(refusal.amount),
        "used": credit_text(refusal.settled + refusal.held),
        "left": credit_text(left),
    }
    return ProxyError(
        _REASONS[refusal.why],
        sentence,
        retry_after_s=1.0 if refusal.why is Why.BUSY else None,
        resets_at_s=refusal.reopens_s if refusal.why is Why.EXHAUSTED else None,
        data=figures,
    )


def limits_of(facts: Facts, accounts: Accounts, at_s: float) -> list[dict[str, Any]]:
    """The budgets that calls of this team and key draw on whatever they ask for."""
    shown = []
    for budget in drawn(accounts.budgets, facts):
        group = budget.group(facts)
        settled, held = accounts.used(budget, group, at_s)
        amount = budget.amount_for(group)
        window = budget.window.window(at_s) if isinstance(budget.window, Calendar) else None
        ends = window is not None and window.end_s != inf
        shown.append(
            {
                "name": budget.name,
                "credits": credit_text(amount),
                "spent": credit_text(settled),
                "held": credit_text(held),
                "left": credit_text(max(0, amount - settled - held)),
                "resets_at": instant_text(window.end_s) if window is not None and ends else None,
            }
        )
    return shown
