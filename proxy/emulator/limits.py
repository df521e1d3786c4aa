"""The limits of the gateway as a table, and the counters that hold requests to them."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proxy.emulator.clock import Clock
from proxy.emulator.options import Options

BODY_BYTES_MAX: Final = 26_214_400
"""25 MB of request body, as declared and as received."""

MINUTE_S: Final = 60.0
DAY_S: Final = 86_400.0


class Counts(Enum):
    """What a limit counts per."""

    MEMBER = "member"
    KEY = "API key"
    ORGANIZATION = "organization"
    SUITE = "suite"


@dataclass(frozen=True, slots=True)
class Limit:
    """`amount` requests per `window_s` emulated seconds, counted per `per`."""

    name: str
    amount: int
    window_s: float
    per: Counts

    def __str__(self) -> str:
        span = "minute" if self.window_s == MINUTE_S else "day"
        return f"{self.amount} tools/call per {span} for this {self.per.value}"


# fmt: off
MEMBER       = Limit("member",       120,  MINUTE_S, Counts.MEMBER)
CHATBOT      = Limit("chatbot",      30,   MINUTE_S, Counts.MEMBER)
RESERVATIONS = Limit("reservations", 300,  MINUTE_S, Counts.MEMBER)
KEY_MINUTE   = Limit("key-minute",   30,   MINUTE_S, Counts.KEY)
KEY_DAY      = Limit("key-day",      200,  DAY_S,    Counts.KEY)
ORG_DAY      = Limit("org-day",      1000, DAY_S,    Counts.ORGANIZATION)
SUITE_MINUTE = Limit("suite-minute", 60,   MINUTE_S, Counts.SUITE)
SUITE_DAY    = Limit("suite-day",    300,  DAY_S,    Counts.SUITE)
# fmt: on

TOOL_LIMITS: Final = (KEY_MINUTE, KEY_DAY, ORG_DAY, SUITE_MINUTE, SUITE_DAY)


@dataclass(frozen=True, slots=True)
class Full:
    """The limit that has no room, and the real seconds until it has."""

    limit: Limit
    wait_s: float


class Counters:
    """How much of each limit is used, per group; several limits are taken together or not at all."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self._on = options.limits
        self._sliding = options.window == "sliding"
        self._amount_scale = options.amount_scale
        self._clock = clock
        self._taken: defaultdict[tuple[str, str], deque[float]] = defaultdict(deque)

    def take(self, wanted: Iterable[tuple[Limit, str]]) -> Full | None:
        """Count one request under each (limit, group); None when it fits all, else the fullest, and nothing counts."""
        if not self._on:
            return None
        now_s = self._clock.now_s()
        slots = [(limit, self._pruned(limit, group, now_s)) for limit, group in wanted]
        full = [
            Full(limit, self._wait_s(limit, taken, now_s)) for limit, taken in slots if len(taken) >= self.amount(limit)
        ]
        if full:
            return max(full, key=lambda row: row.wait_s)
        for _, taken in slots:
            taken.append(now_s)
        return None

    def amount(self, limit: Limit) -> int:
        return max(1, int(limit.amount * self._amount_scale))

    def used(self) -> Mapping[str, int]:
        """Requests counted at this moment, by `limit:group`."""
        now_s, limits = self._clock.now_s(), {limit.name: limit for limit in ALL}
        return {
            f"{name}:{group}": count
            for name, group in sorted(self._taken)
            if (count := len(self._pruned(limits[name], group, now_s)))
        }

    def _pruned(self, limit: Limit, group: str, now_s: float) -> deque[float]:
        taken = self._taken[limit.name, group]
        start_s = now_s - limit.window_s if self._sliding else now_s // limit.window_s * limit.window_s
        # A sliding window ends exactly window_s after the request; an aligned block holds its first instant.
        while taken and (taken[0] <= start_s if self._sliding else taken[0] < start_s):
            taken.popleft()
        return taken

    def _wait_s(self, limit: Limit, taken: deque[float], now_s: float) -> float:
        if self._sliding:
            open_s = taken[len(taken) - self.amount(limit)] + limit.window_s
        else:
            open_s = (now_s // limit.window_s + 1) * limit.window_s
        return max(0.0, open_s - now_s) / self._clock.scale


ALL: Final = (MEMBER, CHATBOT, RESERVATIONS, *TOOL_LIMITS)
