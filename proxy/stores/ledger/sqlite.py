"""The ledger in a file: decided in memory, appended in one statement a batch, rebuilt from the file when in doubt.

One connection with an exclusive lock. A batch is committed at once when nothing is being written; what arrives during a
commit makes the next batch. What nobody waits for is decided at once and rides with the next batch, or goes out after a
short while. After a failed commit those who wait are told, and the projection is rebuilt from the file before anything
else is admitted.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

import aiosqlite

from proxy.core.accounts import Accounts
from proxy.core.facts import Facts
from proxy.core.ledger import Adjust, Hold, HoldState, Outcome, Phase, Settle, Step
from proxy.core.limits import Budget
from proxy.core.operations import Operation
from proxy.core.projection import Projection
from proxy.core.riders import KeptKey, KeptOutcome, KeptOwner, KeptTurn, Learned, Rider, Turn, TurnWritten
from proxy.core.spending import Total
from proxy.core.windows import Calendar, Sliding
from proxy.stores.ledger import archive, reading, schema
from proxy.stores.ledger.commit import Commit, LedgerUnavailable
from proxy.stores.ledger.contract import LATER_S, CannotOpen, Entry
from proxy.stores.ledger.numbers import FactNumbers, Places
from proxy.stores.ledger.opening import UNCHECKED, make_private, prepare
from proxy.stores.ledger.rows import Row, facts_in, facts_of, held, quarter, row, settled, texts, values
from proxy.units import Credits

_OK: Final = Outcome.OK
"""Bound once: looking a member up in its enum takes as long as a call."""

LATER_MAX: Final = 512
"""Rows that may wait for a batch to ride with."""

ROWS_A_TURN: Final = 100
"""Rows booked into new accounts before the rest of the process has its turn: a few milliseconds."""

Dimensions = tuple[int, Facts]
Judged = tuple[list[Row], Commit, list[Outcome]]
"""What a batch writes, and what became of its steps."""


class SqliteLedger:
    """One file, one process."""

    def __init__(
        self, database: aiosqlite.Connection, path: Path, budgets: Iterable[Budget], later_s: float = LATER_S
    ) -> None:
        self._database: Final = database
        self._path: Final = path
        self._later_s: Final = later_s
        self._budgets = tuple(budgets)
        self._waiting: list[Commit] = []
        self._later: list[Judged] = []
        self._timer: asyncio.TimerHandle | None = None
        self._pushed = False
        self._writer: asyncio.Task[None] | None = None
        self._stale = False
        self._earlier: frozenset[str] | None = None  # open holds of an earlier process; None until the file was read
        self._places = Places({})
        self._facts = FactNumbers()
        self.projection = Projection(accounts=Accounts(budgets))

    @classmethod
    async def open(
        cls, path: Path, budgets: Iterable[Budget] = (), *, now_s: float, full: bool = True, later_s: float = LATER_S
    ) -> "SqliteLedger":
        """Open or make the file; raises CannotOpen.

        full:    commits survive a power cut; otherwise only a crash of this process.
        later_s: how long what nobody waits for may stay unwritten.
        """
        make_private(path)
        database = await aiosqlite.connect(path, isolation_level=None)
        try:
            await prepare(database, path, full=full)
            ledger = cls(database, path, budgets, later_s)
            await ledger._rebuild(now_s)
        except sqlite3.OperationalError as error:
            await database.close()
            if "locked" in str(error) or "busy" in str(error):
                raise CannotOpen(
                    f"{path} is in use by another process; stop it, or give this one a folder of its own with --data"
                ) from error
            raise CannotOpen(f"{path} cannot be opened ({error})") from error
        except sqlite3.DatabaseError as error:
            await database.close()
            raise CannotOpen(
                f"{path} is damaged ({error}); put a backup in its place, or move it away to begin with empty books"
            ) from error
        except BaseException:
            await database.close()
            raise
        return ledger

    # --- writing ---

    async def apply(self, steps: Sequence[Step]) -> list[Outcome]:
        """Hand a batch in and wait for it; raises LedgerUnavailable."""
        return await self.submit(steps)

    def submit(self, steps: Sequence[Step], *, soon: bool = True) -> Commit:
        """Hand a batch in; it is written with the next commit, whoever waits for it."""
        commit = Commit(steps, soon)
        self._waiting.append(commit)
        self._write()
        return commit

    def push(self) -> None:
        """Write at once what was not to be written soon."""
        if self._waiting or self._later:
            self._pushed = True
            self._write()

    def rebudget(self, budgets: Iterable[Budget]) -> Commit:
        """The accounts are made anew from the file before the next batch is judged."""
        self._budgets = tuple(budgets)
        self._stale = True
        return self.submit([])

    def _write(self) -> None:
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_all())

    async def _write_all(self) -> None:
        while self._waiting or (self._later and self._pushed):
            pushed, self._pushed = self._pushed, False
            batch, self._waiting = self._waiting, []
            try:
                if self._stale:
                    # What waits to ride was decided on the old accounts, and the file does not know it yet.
                    await self._commit()
                    # Who asks for other accounts meanwhile is heard when the next batch is judged.
                    self._stale = False
                    await self._rebuild(self._latest_s(batch))
                self._decide(batch)
                if pushed or len(self._later) > LATER_MAX or any(commit.soon for commit in batch):
                    await self._commit()
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever
                # Memory may be ahead of the file now: nothing is decided on it any more.
                self._stale = True
                for commit in [*batch, *(commit for _, commit, _ in self._later)]:
                    commit.refused(str(error))
                self._later = []
        self._pushed = False
        if self._later and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._later_s, self._overdue)

    def _overdue(self) -> None:
        self._timer = None
        self.push()

    @staticmethod
    def _latest_s(batch: Sequence[Commit]) -> float:
        dated = (step.at_s for commit in batch for step in commit.steps if not isinstance(step, Rider))
        return max(dated, default=0.0)

    def _decide(self, batch: Sequence[Commit]) -> None:
        """Judge each step in memory, and make the rows of those that were taken."""
        for commit in batch:
            rows: list[Row] = []
            self._later.append((rows, commit, self._judge(commit.steps, rows)))

    def _judge(self, steps: Sequence[Step], rows: list[Row]) -> list[Outcome]:
        """Judge steps that came together, nearly always a hold with its turn or a settlement with the turn's end.

        Each of the two has one row with both in it; what comes with them has rows of its own.
        """
        outcomes: list[Outcome] = []
        if len(steps) > 1:
            first, second = steps[0], steps[1]
            if isinstance(first, Hold):
                if isinstance(second, Turn) and second.id == second.hold == first.hold and second.facts == first.facts:
                    outcomes.append(self._hold(first, second, rows))
            elif isinstance(first, Settle) and isinstance(second, TurnWritten) and second.id == first.hold:
                outcomes.append(self._settle(first, second, rows))
            if outcomes and outcomes[0] is _OK:
                outcomes.append(_OK)
        if len(outcomes) < len(steps):
            outcomes += [self._take(step, rows) for step in steps[len(outcomes) :]]
        return outcomes

    def _hold(self, step: Hold, turn: Turn | None, rows: list[Row]) -> Outcome:
        """Judge a hold; its row has its turn in it, where one is given."""
        projection = self.projection
        # Money is never dated before money that moved earlier, as `Projection.dated` says.
        at_s = projection.accounts.dated(step.at_s)
        outcome = projection.hold(step, at_s)
        if outcome is _OK:
            facts, place = self._facts.number(step.facts, rows), self._places.number(step.place, rows)
            rows.append(held(step, at_s, facts, place, turn))
        return outcome

    def _settle(self, step: Settle, written: TurnWritten | None, rows: list[Row]) -> Outcome:
        """Judge a settlement; its row has the end of the call's turn in it, where it is given."""
        before = self.projection.known(step.hold)
        outcome = self.projection.end(step, before)
        if outcome is _OK:
            assert before is not None
            rows.append(settled(step, before, self._facts.number(before.facts, rows), written))
        return outcome

    def _take(self, step: Step, rows: list[Row]) -> Outcome:
        """Judge one step; its row goes to the others where it was taken."""
        if isinstance(step, Hold):
            return self._hold(step, None, rows)
        if isinstance(step, Settle):
            return self._settle(step, None, rows)
        before = None
        if isinstance(step, Rider):
            outcome = self.projection.ride(step)
        elif isinstance(step, Adjust):
            step = self.projection.dated(step)
            outcome = self.projection.apply(step)
        else:
            before = self.projection.known(step.hold)
            outcome = self.projection.end(step, before)
        if outcome is _OK:
            facts = facts_in(step, before)
            rows.append(row(step, before, None if facts is None else self._facts.number(facts, rows)))
        return outcome

    async def _commit(self) -> None:
        """Write what is decided, one statement as long as it fits in one, and tell those who wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._later:
            count = 0
            rows: list[Row] = []
            for made, _, _ in self._later:
                if rows and len(rows) + len(made) > schema.ROWS_MAX:
                    break
                rows += made
                count += 1
            if rows:
                size, given = values(rows)
                await self._database.execute_fetchall(schema.append(size), given)
            written, self._later = self._later[:count], self._later[count:]
            for _, commit, outcomes in written:
                commit.written(outcomes)

    # --- reading ---

    async def _all(self, statement: str, *values: Any) -> list[Any]:
        return list(await self._database.execute_fetchall(statement, values))

    async def _fill(self, accounts: Accounts, now_s: float) -> None:
        """Book what the windows of an instant have used: calendar ones from totals, sliding ones from entries."""
        budgets = accounts.budgets
        begun: dict[int, set[str]] = {}
        sliding = {budget.name: budget.window.seconds for budget in budgets if isinstance(budget.window, Sliding)}
        for budget in budgets:
            if isinstance(budget.window, Calendar):
                since = quarter(max(budget.window.window(now_s).start_s, 0.0))
                begun.setdefault(since, set()).add(budget.name)
        for since, names in begun.items():
            async for spent, *facts in _in_turns(await self._all(reading.SPENT_IN, since)):
                accounts.spent(facts_of(facts), spent, now_s, among=names)
        if sliding:
            since_s = now_s - max(sliding.values())
            async for at_s, spent, *facts in _in_turns(await self._all(reading.SPENT_SINCE, since_s)):
                accounts.spent(facts_of(facts), spent, at_s, among=sliding.keys())

    async def _rebuild(self, now_s: float) -> None:
        """Make the projection anew from the file: totals of open windows, and open holds."""
        ((latest_s,),) = await self._all(reading.LATEST)
        now_s = max(now_s, latest_s or 0.0, self.projection.accounts.dated(-inf))
        accounts = Accounts(self._budgets)
        accounts.dated(now_s)
        projection = Projection(accounts=accounts)
        await self._fill(accounts, now_s)
        projection.spent.update(await self._all(reading.SPENT_BY_TEAM))
        self._places = Places(dict(await self._all(reading.PLACES)))
        self._facts = FactNumbers(await reading.numbers(self._all))
        held_by_work = {one.hold.id for one in await self.operations()}
        earlier = []
        for hold, at_s, amount, *names in await self._all(reading.OPEN_HOLDS):
            of_earlier = self._earlier is None or hold in self._earlier
            doubt = of_earlier and hold not in held_by_work
            projection.reopen(hold, HoldState(facts_of(names), Phase.HELD, Credits(amount), at_s, doubt=doubt))
            if doubt or hold in held_by_work:
                # Nobody waits for it to end: it runs for hours, or nobody is left who would end it.
                accounts.lasts(hold, doubted=doubt)
            if of_earlier:
                earlier.append(hold)
        # Nothing is waited for from here on, so nobody is promised anything in between.
        accounts.follow(self._accounts)
        self.projection = projection
        self._earlier = frozenset(earlier)

    @property
    def _accounts(self) -> Accounts:
        accounts = self.projection.accounts
        assert isinstance(accounts, Accounts)
        return accounts

    @property
    def unknown(self) -> frozenset[str]:
        """Holds of an earlier process without an ending: they are spent until somebody says what they cost."""
        return frozenset(hold for hold, state in self.projection.holds.items() if state.doubt)

    async def remember(self, hold: str) -> HoldState | None:
        """A hold as its entries left it, however long ago; what is submitted next is judged by it."""
        state = self.projection.known(hold) or await reading.ended_hold(self._all, hold)
        if state is not None and self.projection.known(hold) is None:
            self.projection.remember(hold, state)
        return self.projection.known(hold)

    async def doubtful(self) -> list[tuple[str, HoldState]]:
        """Holds with an uncertain ending that nobody has resolved."""
        return await reading.doubtful(self._all)

    async def owners(self, since_s: float) -> list[KeptOwner]:
        """Ids given since an instant, oldest first."""
        return await reading.owners(self._all, since_s)

    async def operations(self) -> list[Operation]:
        """Open operations, oldest first."""
        return await reading.operations(self._all)

    async def outcome(self, team: str, key: str) -> KeptOutcome | None:
        """What is known of a call with an idempotency key."""
        return await reading.outcome(self._all, team, key)

    async def keys(self) -> list[KeptKey]:
        """Every virtual key issued by command, oldest first."""
        return await reading.keys(self._all)

    async def turns(self, since_s: float) -> list[KeptTurn]:
        """Turns taken or written since an instant, and those never written, oldest first."""
        return await reading.turns(self._all, since_s)

    async def learned(self) -> list[Learned]:
        """What was learned about text, per route and model."""
        return await reading.learned(self._all)

    async def totals(self, since_s: float) -> list[Total]:
        """What was spent since an instant, per quarter of an hour and kind of call."""
        return await archive.totals(self._all, since_s)

    async def entry_page(self, after: int, limit: int) -> list[Entry]:
        """So many entries after the one of a number, in the order they were written."""
        return await archive.entries(self._all, after, limit)

    async def backup(self, path: Path) -> None:
        """Write a whole copy into a new file; raises LedgerUnavailable. Nothing is admitted meanwhile."""
        try:
            await archive.copy(self._all, path)
        except (OSError, sqlite3.Error) as error:
            raise LedgerUnavailable(f"{path} cannot be written ({error})") from error

    async def verify(self) -> list[str]:
        """Everything in the file that does not add up; empty when it does."""
        await self._all("PRAGMA ignore_check_constraints = OFF")
        try:
            problems = [said for (said,) in await self._all("PRAGMA integrity_check") if said != "ok"]
        finally:
            await self._all(UNCHECKED)
        problems += [
            f"{count} rows of {table} have a number for what they are about that stands for nothing"
            for table, count in await self._all(reading.NO_FACTS)
            if count
        ]
        ((missing,),) = await self._all(reading.MISSING)
        if missing:
            problems.append(f"{missing} entries do not say what they are about")
        problems += [
            f"the settlement of {hold} is about something else than its hold"
            for (hold,) in await self._all(reading.CHANGED)
        ]
        wanted: dict[Dimensions, tuple[int, int]] = {}
        for place, *names, spent, calls, at_s in await self._all(reading.REBUILT):
            if place != quarter(at_s):
                problems.append(f"a settlement stands in quarter {place}, its hold in {quarter(at_s)}")
            _add(wanted, (place, facts_of(names)), spent, calls)
        kept: dict[Dimensions, tuple[int, int]] = {}
        for place, spent, calls, *names in await self._all(reading.TOTALS_SINCE, 0):
            _add(kept, (place, facts_of(names)), spent, calls)
        problems += [
            f"the total of quarter {place} for team {facts.team} is {kept.get((place, facts))}, its entries add up "
            f"to {wanted.get((place, facts))}"
            for place, facts in sorted(wanted.keys() | kept.keys(), key=lambda total: (total[0], texts(total[1])))
            if kept.get((place, facts)) != wanted.get((place, facts))
        ]
        if set(await self._all(reading.OPEN_HOLDS_NAMES)) != set(await self._all(reading.OPEN_BY_ENTRIES)):
            problems.append("the holds that are listed as open are not those without an ending")
        said: dict[str, int] = dict(await self._all(reading.SPENT_BY_TEAM))
        summed: dict[str, int] = dict(await self._all(reading.SPENT_BY_TOTALS))
        problems += [
            f"the team {team} is said to have spent {said.get(team)}, its totals add up to {summed.get(team)}"
            for team in sorted(said.keys() | summed.keys())
            if said.get(team) != summed.get(team)
        ]
        return problems

    async def close(self) -> None:
        """Finish what is being written and let go of the file."""
        self.push()
        if self._writer is not None:
            await asyncio.wait([self._writer])
        if self._timer is not None:
            self._timer.cancel()
        await self._database.close()


def _add(sums: dict[Dimensions, tuple[int, int]], where: Dimensions, spent: int, calls: int) -> None:
    was = sums.get(where, (0, 0))
    sums[where] = (was[0] + spent, was[1] + calls)


async def _in_turns(rows: Sequence[Any]) -> AsyncIterator[Any]:
    """Rows one by one, with everybody else's turn after every few of them."""
    for at, one in enumerate(rows, 1):
        yield one
        if at % ROWS_A_TURN == 0:
            await asyncio.sleep(0)
