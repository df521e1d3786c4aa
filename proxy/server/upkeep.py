"""What the ledger's file lets go of: rows beside the entries that are too old to matter. Entries stay."""

import asyncio
from collections.abc import Mapping
from typing import Final

from proxy.core.owners import KEPT_S
from proxy.core.riders import Forget, Shelf
from proxy.server.parts import Parts

EVERY_S: Final = 60.0
"""Some hundreds of rows a minute are more than a busy proxy adds."""

KEPT: Final[Mapping[Shelf, float]] = {
    Shelf.OWNERS: KEPT_S,
    Shelf.OPERATIONS: KEPT_S,
    Shelf.OUTCOMES: 86_400.0,
}
"""Seconds that rows of a table are kept. Turns are let go of by whoever counts them."""


async def watch(parts: Parts, *, every_s: float = EVERY_S) -> None:
    """Let go of what is old, until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        tidy(parts)


def tidy(parts: Parts) -> None:
    """Let go of what is old now."""
    now_s = parts.wall()
    parts.books.note([Forget(shelf, now_s - kept_s) for shelf, kept_s in KEPT.items()])
