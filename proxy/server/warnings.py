"""Budgets that came to a share at which somebody wants to know: one log line and one count each, once in a window."""

import asyncio
from typing import Final

from proxy.server.parts import Parts
from proxy.units import credit_text

EVERY_S: Final = 1.0
"""How often the accounts are asked; no call waits for it."""


def tell(parts: Parts) -> None:
    """Tell what was reached since the last time."""
    for one in parts.books.accounts.crossed():
        share = f"{one.share:g}"
        parts.metrics.count("budget_warnings_total", one.budget.name, share)
        parts.log.note(
            "warning",
            "budget_warning",
            budget=one.budget.name,
            group="/".join(one.group) or None,
            share=share,
            spent=credit_text(one.settled),
            amount=credit_text(one.amount),
            source=one.budget.source,
        )


async def watch(parts: Parts, *, every_s: float = EVERY_S) -> None:
    """Tell until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        tell(parts)
