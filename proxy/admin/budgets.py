"""Budgets and their accounts: what is spent, held and left, and when windows end."""

from typing import Any

from proxy.admin.call import Asked, Refused
from proxy.core.account import Standing
from proxy.core.limits import Budget
from proxy.core.listing import listing
from proxy.server.parts import Parts
from proxy.server.quotas import quota_of
from proxy.units import credit_text, instant_text


def standing_row(one: Standing) -> dict[str, Any]:
    """One account for JSON."""
    return {
        "name": one.budget.name,
        "source": one.budget.source,
        "group": list(one.group),
        "credits": credit_text(one.amount),
        "spent": credit_text(one.settled),
        "held": credit_text(one.held),
        "left": credit_text(one.left),
        "warnings": list(one.reached),
        "resets_at": None if one.ends_s is None else instant_text(one.ends_s),
    }


async def show_all(_: Asked, parts: Parts) -> dict[str, Any]:
    """Every budget, each with its accounts."""
    return {"budgets": [_budget(budget, parts) for budget in parts.books.accounts.budgets]}


async def show(asked: Asked, parts: Parts) -> dict[str, Any]:
    """One budget. Raises Refused."""
    return _budget(named(asked.values["name"], parts), parts)


def named(name: str, parts: Parts) -> Budget:
    """Raises Refused."""
    budgets = parts.books.accounts.budgets
    for budget in budgets:
        if budget.name == name:
            return budget
    known = ", ".join(budget.name for budget in budgets) or "none"
    raise Refused(404, f"there is no budget {name!r}; known are {known}")


def _budget(budget: Budget, parts: Parts) -> dict[str, Any]:
    words = {said.name: said.words for said in listing(parts.state.policy) if said.kind == "budget"}
    accounts = parts.books.accounts.standing(budget, parts.wall())
    said = {
        "name": budget.name,
        "source": budget.source,
        "says": words.get(budget.name, {}),
        "acts": budget.acts,
        "accounts": [standing_row(one) for one in accounts],
    }
    quota = quota_of(budget, parts)
    if quota is not None:
        here = sum(one.settled for one in accounts)
        said["service"] = {
            "used": credit_text(quota.used),
            "elsewhere": credit_text(quota.used - here),
            "read_at": instant_text(quota.read_s),
        }
    return said
