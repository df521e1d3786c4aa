"""Pauses and breakers: gates that let nothing through until an instant, and then one call to see whether all may.

A gateway that says how long it wants to be left alone is left alone so long. One that fails again and again is asked
again seldom, by one call at a time, until it answers.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Final

PAUSE_MIN_S: Final = 1.0
PAUSE_MAX_S: Final = 60.0
PAUSE_UNKNOWN_S: Final = 5.0
"""How long a 429 pauses a member: what it says, within bounds, as the gateway's longest short window is a minute."""

BREAK_UNKNOWN_S: Final = 60.0
"""How long maintenance without a figure is believed."""

BREAK_MAX_S: Final = 3600.0
"""Longest time a 503 closes a gate: beyond it somebody should look again."""

FAILURES: Final = 5
WITHIN_S: Final = 10.0
"""So many failures in so many seconds close the gate of one route and model."""

FIRST_BREAK_S: Final = 5.0
LONGEST_BREAK_S: Final = 60.0
"""How long such a gate stays closed: doubled each time the call that looks fails too."""

GATES_MAX: Final = 1024
"""Gates kept before those that mean nothing any more are let go of: callers invent model names."""


def pause_s(told_s: float | None) -> float:
    """How long a 429 pauses a member."""
    return PAUSE_UNKNOWN_S if told_s is None else min(max(told_s, PAUSE_MIN_S), PAUSE_MAX_S)


@dataclass(slots=True)
class Gate:
    """One thing at the gateway that can be shut: a member, a suite, a route with its model, or all of it.

    until_s: shut until then.       looking: one call is out to see whether it answers.
    probes:  after `until_s` one call at a time goes through, until one is answered well.
    """

    until_s: float = -inf
    probes: bool = False
    looking: bool = False
    break_s: float = FIRST_BREAK_S
    failed: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))

    def opens_s(self, now_s: float) -> float:
        """When a call may go through: now, an instant, or inf while one is out to look."""
        if now_s < self.until_s:
            return self.until_s
        return inf if self.probes and self.looking else now_s

    def recent(self, now_s: float) -> bool:
        """Whether failures are still counted."""
        return bool(self.failed) and now_s - self.failed[-1] <= WITHIN_S


class Gates:
    """All gates that are shut or have seen failures, by name."""

    def __init__(self) -> None:
        self._gates: Final[dict[str, Gate]] = {}

    def opens_s(self, names: tuple[str, ...], now_s: float) -> float:
        """When all of them let a call through; inf where nobody knows."""
        if not self._gates:
            return now_s
        return max((gate.opens_s(now_s) for name in names if (gate := self._gates.get(name))), default=now_s)

    def shut(self, names: tuple[str, ...], now_s: float) -> str | None:
        """The name of the one that opens last, None where all are open."""
        shut = [(gate.opens_s(now_s), name) for name in names if (gate := self._gates.get(name)) is not None]
        return max((entry for entry in shut if entry[0] > now_s), default=(0.0, None))[1]

    def until_s(self, name: str) -> float:
        """When a gate opens, -inf for one that is not shut."""
        return self._gates[name].until_s if name in self._gates else -inf

    def pass_through(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """A call goes through: the gates that it is the one to look behind."""
        if not self._gates:
            return ()
        looks = tuple(name for name in names if (gate := self._gates.get(name)) is not None and gate.probes)
        for name in looks:
            self._gates[name].looking = True
        return looks

    def came_back(self, names: tuple[str, ...]) -> None:
        """A call that was to look is over; where it told nothing, the next one looks."""
        for name in names:
            if (gate := self._gates.get(name)) is not None:
                gate.looking = False

    def pause(self, name: str, until_s: float) -> None:
        """Shut a gate until an instant; it then opens for all."""
        gate = self._gates.setdefault(name, Gate())
        gate.until_s = max(gate.until_s, until_s)

    def break_(self, name: str, until_s: float) -> None:
        """Shut a gate until an instant; one call then looks before the others go."""
        self.pause(name, until_s)
        self._gates[name].probes, self._gates[name].looking = True, False

    def failed(self, name: str, now_s: float) -> None:
        """A call failed without saying until when: enough of them shut the gate, and so does one that looked."""
        if name not in self._gates and len(self._gates) >= GATES_MAX:
            self._forget(now_s)
        gate = self._gates.setdefault(name, Gate())
        gate.failed.append(now_s)
        looked = gate.probes
        if looked or (len(gate.failed) == FAILURES and now_s - gate.failed[0] <= WITHIN_S):
            gate.break_s = min(gate.break_s * 2, LONGEST_BREAK_S) if looked else FIRST_BREAK_S
            gate.failed.clear()
            self.break_(name, now_s + gate.break_s)

    def answered(self, names: tuple[str, ...], now_s: float) -> None:
        """A call was answered: what looked through these gates found all well."""
        for name in names:
            gate = self._gates.get(name)
            if gate is not None and now_s >= gate.until_s and (gate.probes or not gate.recent(now_s)):
                del self._gates[name]

    def _forget(self, now_s: float) -> None:
        for name in [name for name, gate in self._gates.items() if now_s >= gate.until_s and not gate.recent(now_s)]:
            del self._gates[name]

    def all_shut(self, now_s: float) -> dict[str, float]:
        """What is shut now, and until when."""
        return {name: gate.until_s for name, gate in self._gates.items() if gate.opens_s(now_s) > now_s}
