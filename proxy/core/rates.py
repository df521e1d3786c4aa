"""Rates: the accounts of all rates, the turns taken from them, and the shares that teams have had.

All instants are seconds of one clock that never goes back; `now_s` is always an argument.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Final

from proxy.core.gatename import GateName
from proxy.core.limits import Counts, Draw, Rate, rates_of
from proxy.core.slots import GUARD_MAX_S, Slots
from proxy.core.turns import Turn, Wants

_TOKENS: Final = Counts.TOKENS
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

MATCHED_MAX: Final = 4096
"""Calls of one kind whose accounts are remembered, so that a call does not ask every rate."""

SLOTS_MAX: Final = 4096
"""Accounts kept before unused ones are let go of."""

TURNS_MAX: Final = 1024
"""Turns kept before those are let go of that take nothing any more."""

OURS: Final = "_proxy"
OUR_WEIGHT: Final = 0.1
"""The proxy's own calls stand behind everybody's, and are not starved either."""


class Rates:
    """The accounts of one policy's rates."""

    def __init__(self, rates: Iterable[Rate], weights: Mapping[str, float]) -> None:
        """weights: by team; 1 where a team has none."""
        self.rates: Final = tuple(rates)
        self._weights: Final = weights
        self._slots: Final[dict[tuple[str, tuple[str, ...]], Slots]] = {}
        self._matched: Final[dict[Draw, tuple[tuple[Slots, ...], Wants | None]]] = {}
        """Accounts by kind of call, and how much of each, unless that depends on the call."""
        self.turns: Final[dict[str, Turn]] = {}
        self._sent: Final[deque[tuple[float, Turn]]] = deque()
        self._prune_at = TURNS_MAX
        self._now_s = -inf

    def at(self, now_s: float) -> float:
        """The latest instant anybody named."""
        if now_s < self._now_s:
            now_s = self._now_s
        self._now_s = now_s
        while self._sent and self._sent[0][0] <= now_s:
            self._guarded(self._sent.popleft()[1])
        return now_s

    def weight(self, team: str) -> float:
        """A team's share against others'."""
        return self._weights.get(team, OUR_WEIGHT if team == OURS else 1.0)

    # --- accounts ---

    def slots_of(self, draw: Draw) -> tuple[Slots, ...]:
        """The accounts a call draws on."""
        return (self._matched.get(draw) or self._match(draw))[0]

    def _match(self, draw: Draw) -> tuple[tuple[Slots, ...], Wants | None]:
        if len(self._matched) >= MATCHED_MAX:
            self._matched.clear()
        if len(self._slots) >= SLOTS_MAX:
            self._prune()
        slots = tuple(self._account(rate, rate.group(draw)) for rate in rates_of(self.rates, draw))
        by_tokens = any(one.rate.counts is _TOKENS for one in slots)
        found = self._matched[draw] = slots, None if by_tokens else tuple((one, 1) for one in slots)
        return found

    def _account(self, rate: Rate, group: tuple[str, ...]) -> Slots:
        key = (rate.name, group)
        if key not in self._slots:
            self._slots[key] = Slots(rate, group, rate.amount_for(group))
        return self._slots[key]

    def _prune(self) -> None:
        self._matched.clear()
        for key, slots in list(self._slots.items()):
            slots.forget(self._now_s)
            if not slots.used and not slots.waiting and slots.capacity == slots.amount:
                del self._slots[key]

    def wants(self, draw: Draw, tokens: int) -> Wants:
        """The accounts a call draws on, and how much of each."""
        slots, wants = self._matched.get(draw) or self._match(draw)
        if wants is not None:
            return wants
        return tuple([(one, tokens if one.rate.counts is _TOKENS else 1) for one in slots])

    def all_slots(self, now_s: float) -> Iterator[Slots]:
        """Every account there is."""
        self.at(now_s)
        for slots in self._slots.values():
            slots.forget(self._now_s)
            yield slots

    def again_s(self) -> float:
        """When to look again though nothing happened: an account that was cut grows, or a guard is over."""
        while self._sent and self._sent[0][1].counted_s < inf:
            self._sent.popleft()
        guarded_s = self._sent[0][0] if self._sent else inf
        return min(guarded_s, min((slots.grows_s for slots in self._slots.values()), default=inf))

    # --- turns ---

    def start(self, name: str, draw: Draw, tokens: int, wants: Wants, gates: tuple[GateName, ...] = ()) -> Turn:
        """Take a place in every account; whoever calls has seen that there is room."""
        team = draw.facts.team
        weight = self.weight(team)
        places, lasts = [], False
        for slots, amount in wants:
            places.append(slots.take(amount))
            lasts = lasts or slots.rate.window_s > 0
            slots.share.take(team, amount / weight)
        return self._keep(Turn(name, draw, tokens, places, gates, lasts))

    def _keep(self, turn: Turn) -> Turn:
        self.turns[turn.id] = turn
        if len(self.turns) > self._prune_at:
            for name in [name for name, one in self.turns.items() if one.gone]:
                del self.turns[name]
            self._prune_at = max(TURNS_MAX, 2 * len(self.turns))
        return turn

    def counted(self, turn: Turn, by_s: float) -> None:
        """The gateway counted the call no later than `by_s`: its places come back a window after it."""
        if by_s < turn.counted_s:
            turn.counted_s = by_s
        for place in turn.places:
            if place.slots.rate.window_s:
                place.slots.ends(place, by_s + place.slots.span_s)

    def written(self, turn: Turn, at_s: float) -> None:
        """The last byte was written at `at_s`: the gateway counts the call within the guard after it.

        Most calls are answered within it, so nothing is reckoned until it is over.
        """
        if turn.written_s == inf:
            turn.written_s = at_s
            self._sent.append((at_s + GUARD_MAX_S, turn))

    def _guarded(self, turn: Turn) -> None:
        """Nobody answered within the guard: the places come back a window after it."""
        if turn.counted_s < inf:
            return
        turn.counted_s = turn.written_s + GUARD_MAX_S
        for place in turn.places:
            if place.slots.rate.window_s:
                place.slots.ends(place, turn.written_s + place.slots.guard_s + place.slots.span_s)

    def closed(self, turn: Turn, now_s: float, tokens: int | None = None) -> None:
        """The call is over; `tokens`: what it used, where that is known."""
        turn.open = False
        for place in turn.places:
            if not place.slots.rate.window_s:
                place.slots.give_back(place)
            elif place.slots.rate.counts is _TOKENS and tokens is not None:
                place.slots.correct(place, tokens)
        now_s = self.at(now_s)
        if turn.written_s > now_s:
            # What was not seen to be written may have been, up to now.
            turn.written_s = now_s
        self._guarded(turn)

    def give_back(self, turn: Turn) -> None:
        """Nothing was sent: every place is free again, and the share was not used."""
        turn.open = False
        self.turns.pop(turn.id, None)
        team = turn.draw.facts.team
        for place in turn.places:
            if not place.gone:
                place.slots.give_back(place)
                place.slots.share.give_back(team, place.amount / self.weight(team))

    def occupy(self, turn: Turn, ends_s: Callable[[Slots], float]) -> None:
        """Take up what an earlier process or policy gave out. ends_s: when a place in an account comes back."""
        places = []
        for slots, amount in self.wants(turn.draw, turn.tokens):
            at_s = ends_s(slots) if slots.rate.window_s or turn.open else -inf
            if at_s > self._now_s:
                place = slots.take(amount)
                places.append(place)
                slots.ends(place, at_s)
        turn.places = places
        self._keep(turn)

    @property
    def waiting_for_an_answer(self) -> Iterable[tuple[float, Turn]]:
        """Turns that were written less than the guard ago, and when that is over."""
        return tuple(self._sent)

    def take_over(self, earlier: "Rates") -> None:
        """Take up the turns that an earlier policy gave out.

        Not those of an earlier process, which are not open and were not seen to be counted: their rows know better.
        """
        self.at(earlier.at(-inf))
        for turn in earlier.turns.values():
            if turn.counted_s == inf and not turn.open:
                continue
            self.occupy(turn, lambda slots, turn=turn: turn.counted_s + slots.span_s)  # type: ignore[misc]
        self._sent.extend(earlier.waiting_for_an_answer)
