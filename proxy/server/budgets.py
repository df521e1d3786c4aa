"""What callers are told about budgets: the refusal that names one, and the list of a team's own."""

from typing import Any, Final

from proxy.core.account import Refusal, Standing, Why
from proxy.core.accounts import Accounts
from proxy.core.facts import Facts
from proxy.core.limits import Budget, Each, spoken_group, within_reach
from proxy.core.windows import spoken
from proxy.errors import ProxyError
from proxy.units import credit_text, instant_text

_REASONS = {Why.NEVER: "request_over_budget", Why.EXHAUSTED: "budget_exhausted", Why.BUSY: "budget_busy"}


def over_budget(refusal: Refusal) -> ProxyError:
    """The error that names the budget, what is left, what was asked, what is in doubt and when it reopens."""
    left = max(0, refusal.amount - refusal.settled - refusal.held)
    name = named(refusal.budget, refusal.group)
    most = f"this call may cost up to {credit_text(refusal.asked)}"
    if refusal.reopens_s is not None:
        reopens = f" It reopens at {instant_text(refusal.reopens_s)}."
    else:
        reopens = " It never reopens by itself; whoever keeps the policies can raise it."
    sentence = {
        Why.NEVER: f"{name} is {credit_text(refusal.amount)} credits in all and {most}; ask for less output.",
        Why.EXHAUSTED: f"{name} has {credit_text(left)} of {credit_text(refusal.amount)} credits left and {most}."
        f"{reopens}",
        Why.BUSY: f"{name} has {credit_text(left)} credits free{_busy(left, refusal.asked)}; {most}; try again soon.",
    }[refusal.why] + _doubted(refusal.doubted)
    figures: dict[str, Any] = {
        "limit": refusal.budget.name,
        "amount": credit_text(refusal.amount),
        "used": credit_text(refusal.settled + refusal.held),
        "left": credit_text(left),
    }
    if refusal.doubted:
        figures["in_doubt"] = credit_text(refusal.doubted)
    return ProxyError(
        _REASONS[refusal.why],
        sentence,
        retry_after_s=1.0 if refusal.why is Why.BUSY else None,
        resets_at_s=refusal.reopens_s if refusal.why is Why.EXHAUSTED else None,
        data=figures,
    )


def named(budget: Budget, group: tuple[str, ...]) -> str:
    """A budget, and whose account of it, as the subject of a sentence."""
    whose = spoken_group(budget.each, group)
    return f"The budget {budget.name}" + (f" of {whose}" if whose else "")


def _busy(left: int, asked: int) -> str:
    return " while other calls run" if left < asked else ", and calls before this one wait for them"


def _doubted(amount: int) -> str:
    # No waiting ends these holds, so whoever is refused hears what does.
    if not amount:
        return ""
    return (
        f" Calls that a crash cut off hold {credit_text(amount)} credits of this budget until somebody says what they "
        "cost: `sluicegate ledger doubts` lists them."
    )


def limits_of(facts: Facts, accounts: Accounts, at_s: float) -> list[dict[str, Any]]:
    """The budgets that calls of this team and key can draw on, each account with what is left and when it ends.

    Of a budget for each model, suite or tool, those in use are shown; other teams' and keys' accounts never are.
    """
    return [
        _told(one)
        for budget in within_reach(accounts.budgets, facts.team, facts.key)
        for one in accounts.standing(budget, at_s, _own_group(budget, facts))
    ]


def _own_group(budget: Budget, facts: Facts) -> tuple[str, ...] | None:
    """The group of the caller's own account; None where calls of one caller have several."""
    return None if budget.each in (Each.MODEL, Each.SUITE, Each.TOOL) else budget.group(facts)


def _told(one: Standing) -> dict[str, Any]:
    budget = one.budget
    match = {name: value for name in MATCHED if (value := getattr(budget.match, name)) is not None}
    return {
        "name": budget.name,
        "group": one.group[-1] if one.group else None,
        "match": match or None,
        "window": spoken(budget.window),
        "acts": budget.acts,
        "credits": credit_text(one.amount),
        "spent": credit_text(one.settled),
        "held": credit_text(one.held),
        "left": credit_text(one.left),
        "resets_at": None if one.ends_s is None else instant_text(one.ends_s),
    }


MATCHED: Final = ("model", "route", "suite", "tool", "chatbot")
"""What of a call a budget may be about besides its caller."""
