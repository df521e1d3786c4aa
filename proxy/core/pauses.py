"""Pauses and breakers: gates that let nothing through until an instant, and then one call to see whether all may.

A gateway that says how long it wants to be left alone is left alone so long. One that fails again and again is asked
again seldom, by one call at a time, until it answers. Whose failures shut which gate is decided in `ways`.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Final

from proxy.core.gatename import GateName
from proxy.core.ways import Ways

PAUSE_MIN_S: Final = 1.0
PAUSE_MAX_S: Final = 60.0
PAUSE_UNKNOWN_S: Final = 5.0
"""How long a 429 pauses a member: what it says, within bounds, as the gateway's longest short window is a minute."""

BREAK_UNKNOWN_S: Final = 60.0
"""How long maintenance without a figure is believed."""

BREAK_MAX_S: Final = 3600.0
"""Longest time a 503 closes a gate: beyond it somebody should look again."""

FIRST_BREAK_S: Final = 5.0
LONGEST_BREAK_S: Final = 60.0
"""How long a gate that saw failures stays shut: doubled each time that another team looks in vain."""

GATES_MAX: Final = 1024
"""Gates kept before those are let go of that only wait for a look: callers invent model names."""

NEWS_S: Final = 1.0
"""Calls that were on their way together are told the same; only what lasts longer by this much is news."""

CHANGES_MAX: Final = 256
"""Changes kept until somebody tells them."""


def pause_s(told_s: float | None) -> float:
    """How long a 429 pauses a member."""
    return PAUSE_UNKNOWN_S if told_s is None else min(max(told_s, PAUSE_MIN_S), PAUSE_MAX_S)


@dataclass(frozen=True, slots=True)
class Change:
    """A gate was shut, or opened again. why: a word of a closed list. until_s: None for one that opened."""

    name: GateName
    why: str
    until_s: float | None


@dataclass(slots=True)
class Gate:
    """One thing at the gateway that can be shut: a member, a suite, a route with its model, or all of it.

    until_s: shut until then.       looking: one call is out to see whether it answers.
    probes:  after `until_s` one call at a time goes through, until one is answered well.
    looked:  teams by when each looked last, as numbers that rise.      vain: whose look failed last.
    """

    until_s: float = -inf
    probes: bool = False
    looking: bool = False
    break_s: float = FIRST_BREAK_S
    looked: dict[str, int] = field(default_factory=dict)
    vain: str | None = None

    def opens_s(self, now_s: float) -> float:
        """When a call may go through: now, an instant, or inf while one is out to look."""
        if now_s < self.until_s:
            return self.until_s
        return inf if self.probes and self.looking else now_s


class Gates:
    """All gates that are shut or wait for a look, by name."""

    def __init__(self) -> None:
        self.ways: Final = Ways()
        self._gates: Final[dict[GateName, Gate]] = {}
        self._changes: Final[deque[Change]] = deque(maxlen=CHANGES_MAX)
        self._looks = 0

    def changes(self) -> list[Change]:
        """What was shut or opened since the last time, oldest first."""
        if not self._changes:
            return []
        told = list(self._changes)
        self._changes.clear()
        return told

    def opens_s(self, names: tuple[GateName, ...], now_s: float) -> float:
        """When all of them let a call through; inf where nobody knows."""
        if not self._gates:
            return now_s
        return max((gate.opens_s(now_s) for name in names if (gate := self._gates.get(name))), default=now_s)

    def shut(self, names: tuple[GateName, ...], now_s: float) -> GateName | None:
        """The name of the one that opens last, None where all are open."""
        shut = [(gate.opens_s(now_s), name) for name in names if (gate := self._gates.get(name)) is not None]
        return max((entry for entry in shut if entry[0] > now_s), default=(0.0, None))[1]

    def until_s(self, name: GateName) -> float:
        """When a gate opens, -inf for one that is not shut."""
        return self._gates[name].until_s if name in self._gates else -inf

    # --- looking ---

    def looked(self, names: tuple[GateName, ...], team: str) -> int | None:
        """None: nobody has to look behind these gates; else when a team looked last, 0 for never."""
        if not self._gates:
            return None
        found = [gate for name in names if (gate := self._gates.get(name)) is not None and gate.probes]
        return max((gate.looked.get(team, 0) for gate in found), default=None)

    def pass_through(self, names: tuple[GateName, ...], team: str) -> tuple[GateName, ...]:
        """A call goes through: the gates that it is the one to look behind."""
        if not self._gates:
            return ()
        looks = tuple(name for name in names if (gate := self._gates.get(name)) is not None and gate.probes)
        self._looks += 1
        for name in looks:
            self._gates[name].looking = True
            self._gates[name].looked[team] = self._looks
        return looks

    def came_back(self, names: tuple[GateName, ...]) -> None:
        """A call that was to look is over; where it told nothing, the next one looks."""
        for name in names:
            if (gate := self._gates.get(name)) is not None:
                gate.looking = False

    # --- shutting and opening ---

    def pause(self, name: GateName, until_s: float, why: str = "told") -> None:
        """Shut a gate until an instant; it then opens for all."""
        gate = self._gates.setdefault(name, Gate())
        if until_s > gate.until_s + NEWS_S:
            self._changes.append(Change(name, why, until_s))
        gate.until_s = max(gate.until_s, until_s)

    def break_(self, name: GateName, until_s: float, why: str = "told") -> None:
        """Shut a gate until an instant; one call then looks before the others go."""
        self.pause(name, until_s, why)
        self._gates[name].probes, self._gates[name].looking = True, False

    def failed(self, way: GateName, own: GateName, team: str, now_s: float, looks: tuple[GateName, ...] = ()) -> None:
        """A call failed without saying until when. looks: gates that it was to look behind.

        way: the gate of all teams.      own: the gate of this team there.
        """
        if len(self._gates) >= GATES_MAX:
            for name in [name for name, gate in self._gates.items() if now_s >= gate.until_s]:
                del self._gates[name]
        alone, everybody = self.ways.failed(way, team, now_s)
        for name, enough in ((own, alone), (way, everybody)):
            gate = self._gates.get(name)
            if gate is not None and gate.probes and name in looks:
                # One team's looks make it longer for that team alone: its gate here doubles, that of all does not.
                if name == own or gate.vain not in (None, team):
                    gate.break_s = min(gate.break_s * 2, LONGEST_BREAK_S)
                gate.vain = team
                self.break_(name, now_s + gate.break_s, "still_fails")
            elif enough and (gate is None or not gate.probes):
                self.break_(name, now_s + FIRST_BREAK_S, "fails")

    def answered(self, names: tuple[GateName, ...], way: GateName, team: str, now_s: float) -> None:
        """A call was answered: what looked through these gates found all well."""
        self.ways.answered(way, team, now_s)
        if not self._gates:
            return
        for name in names:
            gate = self._gates.get(name)
            if gate is None or now_s < gate.until_s:
                continue
            del self._gates[name]
            if gate.probes:
                self.ways.mended(way, None if name == way else team)
                self._changes.append(Change(name, "answered", None))

    def all_shut(self, now_s: float) -> dict[GateName, float]:
        """What is shut now, and until when."""
        return {name: gate.until_s for name, gate in self._gates.items() if gate.opens_s(now_s) > now_s}
