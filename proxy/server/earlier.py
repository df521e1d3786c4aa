"""Turns that an earlier process took, as their rows tell. Whatever a row leaves open only lengthens waits."""

from collections.abc import Callable
from dataclasses import dataclass

from proxy.core.limits import Draw
from proxy.core.riders import KeptTurn
from proxy.core.slots import Slots
from proxy.core.turns import Turn
from proxy.server.boot import Boot


@dataclass(frozen=True, slots=True)
class Earlier:
    """One row.

    now_s:   the clock of turns.      wall_s: the clock on the wall, at the same instant.
    since_s: the machine's clock, looked at no later: what passes between two looks makes a row younger, never older.
    died_s:  when its process had ended at the latest, by the clock of turns.
    """

    kept: KeptTurn
    boot: Boot
    now_s: float
    wall_s: float
    since_s: float
    died_s: float

    def turn(self, member_of: Callable[[str], str]) -> Turn:
        """The turn without its places. member_of: whom the gateway's limits count a credential for."""
        row = self.kept.turn
        # Only a tool call names a tool.
        method = "tools/call" if row.facts.tool is not None else None
        draw = Draw(row.facts, member_of(row.facts.credential), method, row.reserves, row.spends)
        return Turn(row.id, draw, row.tokens, (), open=False)

    def ends_s(self, slots: Slots) -> float:
        """When its place comes back.

        A request that nobody saw end may have been written until its process did, and counted a guard later. Of others
        the row says when they were counted at the latest, as long as the machine's clock has run since.
        """
        row, written = self.kept.turn, self.kept.written
        if written is None:
            return self.died_s + slots.span_s + slots.guard_s
        ago_s = self.boot.age_s(
            row.boot_id,
            written.boot_s,
            written.at_s,
            slots.rate.window_s,
            since_s=self.since_s,
            now_s=self.wall_s,
        )
        guard_s = 0.0 if self.boot.is_this(row.boot_id) else slots.guard_s
        return self.now_s - ago_s + slots.span_s + guard_s
