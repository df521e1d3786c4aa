"""The queue: where a call waits for its turn and its hold, and takes both together.

The scheduler decides; here are the futures, the one timer and the rows that let turns survive a restart. Whoever leaves
the queue, by whichever door, leaves nothing behind.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Final

from proxy.core.account import Why
from proxy.core.holds import OpenHold
from proxy.core.ledger import hold_of
from proxy.core.policy import Policy
from proxy.core.purse import Purse
from proxy.core.riders import Forget, Rider, Shelf, turn_of, written_of
from proxy.core.scheduler import Scheduler
from proxy.core.slots import Slots
from proxy.core.turns import Block, Held, Turn, Waiter
from proxy.observe.metrics import Metrics
from proxy.server.books import Books
from proxy.server.boot import Boot, SetForward
from proxy.server.budgets import over_budget
from proxy.server.earlier import Earlier
from proxy.server.waits import queue_full, refused

FORGET_EVERY: Final = 256
"""Turns between two looks at rows that no window needs any more."""

WATCH_S: Final = 5.0
"""Longest wait for a hold's ending before the budgets are looked at again: a window may have ended meanwhile."""

OnGone = Callable[[Callable[[], None]], None]
"""Has a function called when a caller leaves."""


class Queue:
    """All waiting for the gateway, in one place."""

    def __init__(
        self, policy: Policy, books: Books, metrics: Metrics, *, boot: Boot, wall: Callable[[], float], room: int
    ) -> None:
        """room: bytes of bodies that may wait."""
        self.scheduler: Final = Scheduler(policy.rates, policy.weights)
        self.waiting_bytes = 0
        self._members = policy.members
        self._books: Final = books
        self._metrics: Final = metrics
        self._boot: Final = boot
        self._wall: Final = wall
        self._room: Final = room
        self._loop: Final = asyncio.get_running_loop()
        self._futures: Final[dict[Waiter, asyncio.Future[Turn | Block]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        self._watching: asyncio.Task[None] | None = None
        self._taken = 0
        self._set: Final = SetForward()
        self._began_s: Final = self.now_s()

    now_s = staticmethod(time.monotonic)
    """The clock of all turns: it never goes back, and stands still while the machine sleeps."""

    # --- taking a turn ---

    async def take(
        self,
        waiter: Waiter,
        hold: OpenHold | None,
        size: int,
        on_gone: OnGone,
        *,
        first: bool = False,
        riders: Sequence[Rider] = (),
    ) -> Turn:
        """Wait for a turn and a hold, and take both. Raises ProxyError, and ConnectionResetError when the caller left.

        size: bytes of the body, which is kept meanwhile.      on_gone: has a function called when the caller leaves.
        first: it was let go before, so it stands before all that came later.      riders: written with the hold.
        """
        while True:
            turn = None if first else self._ask(waiter)
            if turn is None:
                turn = await self._wait(waiter, size, on_gone)
            rows, refusal = self._rows(turn, hold), None
            if riders:
                rows = [*riders, *rows]
            try:
                # Turn and hold are written in one commit.
                if hold is not None:
                    taken = hold_of((hold.id, turn.draw.facts, hold.credits, self._wall(), hold.place))
                    refusal = await self._books.hold(taken, rows)
                elif rows:
                    await self._books.write(rows)
            except BaseException:
                self.give_back(turn)
                raise
            if refusal is None:
                for place in turn.places:
                    slots = place.slots
                    said = waiter.team, slots.rate.name, _decision(slots, waiter.block)
                    self._metrics.add("limit_decisions_total", said, 1)
                return turn
            self.give_back(turn)
            if refusal.why is not Why.BUSY or self.now_s() >= waiter.deadline_s:
                raise over_budget(refusal)
            first = True

    def _ask(self, waiter: Waiter) -> Turn | None:
        answer = self.scheduler.ask(waiter, self.now_s(), self._purse())
        if isinstance(answer, Block):
            raise self._refused(waiter, answer)
        return answer

    async def _wait(self, waiter: Waiter, size: int, on_gone: OnGone) -> Turn:
        future: asyncio.Future[Turn | Block] = self._loop.create_future()
        self.scheduler.join(waiter, self.now_s())
        self._futures[waiter] = future
        self.waiting_bytes += size
        self._metrics.change("queued_requests", waiter.team, by=1)
        began_s = self.now_s()
        try:
            self.look()
            if not future.done():
                self._may_wait(waiter)
                on_gone(lambda: _leave(future))
            answer = await future
        except BaseException:
            self._out(waiter, future)
            raise
        finally:
            self._futures.pop(waiter, None)
            self.waiting_bytes -= size
            self._metrics.change("queued_requests", waiter.team, by=-1)
            self._metrics.observe("queue_wait_seconds", value=self.now_s() - began_s)
        if isinstance(answer, Block):
            raise self._refused(waiter, answer)
        return answer

    def _may_wait(self, waiter: Waiter) -> None:
        """Raises ProxyError where waiting would be in vain, or there is no room for it."""
        if self.waiting_bytes > self._room:
            raise queue_full(self._room)
        if (block := self.scheduler.in_vain(waiter, self.now_s())) is not None:
            raise self._refused(waiter, block)

    def _refused(self, waiter: Waiter, block: Block) -> Exception:
        if block.slots is not None:
            self._metrics.count("limit_decisions_total", waiter.team, block.slots.rate.name, "refuse")
        return refused(block, waiter, self.now_s(), self._wall())

    def _out(self, waiter: Waiter, future: "asyncio.Future[Turn | Block]") -> None:
        """Somebody leaves the queue without a turn; one that came at the same moment goes back."""
        self.scheduler.leave(waiter)
        if future.done() and not future.cancelled() and future.exception() is None:
            answer = future.result()
            if isinstance(answer, Turn):
                self.give_back(answer)
        self.changed()

    def _rows(self, turn: Turn, hold: OpenHold | None) -> list[Rider]:
        if not turn.lasts:
            return []
        draw, at_s, since_s = turn.draw, self._wall(), self._boot.since_s()
        facts, _, _, reserves, spends = draw
        of_hold = None if hold is None else hold.id
        row = turn_of((turn.id, facts, reserves, spends, turn.tokens, at_s, self._boot.id, since_s, of_hold))
        rows: list[Rider] = [row]
        self._taken += 1
        set_ago_s = self._set.ago_s(at_s, since_s)
        if self._taken % FORGET_EVERY == 0:
            kept_s = 2 * max(rate.window_s for rate in self.scheduler.rates.rates)
            # What a clock that was set makes look old may still count, until it is that old.
            if set_ago_s >= kept_s:
                rows.append(Forget(Shelf.TURNS, at_s - kept_s))
        return rows

    # --- what happens to turns ---

    def written(self, turn: Turn) -> None:
        """The last byte of the request is with the gateway, as far as the system tells."""
        self.scheduler.rates.written(turn, self.now_s())
        self.changed()

    def counted(self, turn: Turn) -> None:
        """The gateway has counted the call: it answers."""
        self.scheduler.rates.counted(turn, self.now_s())
        self.changed()

    def closed(self, turn: Turn, tokens: int | None) -> list[Rider]:
        """The call is over; the row that says so."""
        now_s = self.now_s()
        self.scheduler.closed(turn, now_s, tokens)
        self.changed()
        if not turn.lasts:
            return []
        ago_s = now_s - turn.counted_s
        return [written_of((turn.id, self._wall() - ago_s, self._boot.since_s() - ago_s))]

    def give_back(self, turn: Turn) -> None:
        """Nothing was sent."""
        self.scheduler.give_back(turn)
        self._books.accounts.take_back(turn.id)
        self.changed()

    def changed(self) -> None:
        """Somebody may start now, or it is known when."""
        if self._soon is None and len(self.scheduler):
            self._soon = self._loop.call_soon(self.look)

    # --- looking ---

    def look(self) -> None:
        """Let go whoever can start, and set the clock for the next look."""
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._soon = self._timer = None
        now_s = self.now_s()
        done = self.scheduler.look(now_s, self._purse())
        for waiter, turn in done.started:
            if (future := self._futures.get(waiter)) is None or future.done():
                self.give_back(turn)
            else:
                future.set_result(turn)
        for waiter in done.refused:
            if (future := self._futures.get(waiter)) is not None and not future.done():
                assert waiter.block is not None
                future.set_result(waiter.block)
        if done.again_s < inf:
            self._timer = self._loop.call_later(max(0.0, done.again_s - now_s), self.look)
        if self._watching is None and self._waits_for_money():
            self._watching = self._loop.create_task(self._watch())

    def _purse(self) -> Purse:
        return Purse(self._books.accounts, self._wall())

    def _waits_for_money(self) -> bool:
        blocks = (lane.head.block for lane in self.scheduler.lanes())
        return any(block is not None and block.held is Held.BUDGET for block in blocks)

    async def _watch(self) -> None:
        """Look again whenever a hold ends, as long as somebody waits for that."""
        try:
            while True:
                ended = self._books.next_ending()
                self.look()
                if not self._waits_for_money():
                    return
                await self._books.ending(ended, WATCH_S)
        finally:
            self._watching = None

    # --- policies and restarts ---

    def member_of(self, credential: str) -> str:
        """Whom the gateway's limits count a credential for."""
        return self._members.get(credential, credential)

    async def take_up(self, policy: Policy | None = None) -> None:
        """Count what was given out before: by an earlier process, or under the policy until now."""
        rows = await self._books.turns()
        if policy is not None:
            self._members = policy.members
            self.scheduler.rerate(policy.rates, policy.weights)
        # In this order, so that a process that was held up between two clocks gives no place back early.
        since_s = self._boot.since_s()
        wall_s, now_s, rates = self._wall(), self.now_s(), self.scheduler.rates
        rates.at(now_s)
        for kept in rows:
            if kept.turn.id not in rates.turns:
                earlier = Earlier(kept, self._boot, now_s, wall_s, since_s, self._began_s)
                rates.occupy(earlier.turn(self.member_of), earlier.ends_s)
        self.look()

    def note(self, riders: Iterable[Rider]) -> None:
        """Write rows that nobody waits for."""
        self._books.note(list(riders))

    def close(self) -> None:
        """Stop looking."""
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        if self._watching is not None:
            self._watching.cancel()


def _decision(slots: Slots, block: Block | None) -> str:
    """What a rate said to a call that started: one that only counts says what it would have done."""
    if block is not None and block.slots is slots:
        return "delay"
    if slots.rate.acts or slots.used <= slots.capacity:
        return "pass"
    return "refuse" if slots.rate.excess.value == "refuse" else "delay"


def _leave(future: "asyncio.Future[Turn | Block]") -> None:
    if not future.done():
        future.set_exception(ConnectionResetError("the caller left the queue"))
