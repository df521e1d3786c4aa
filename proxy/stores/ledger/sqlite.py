"""The ledger in a file: decided in memory, appended in one statement a batch, rebuilt from the file when in doubt.

One connection with an exclusive lock. A batch is committed at once when nothing is being written; what arrives during a
commit makes the next batch, so there is no timer. After a failed commit those who wait are told, and the projection is
rebuilt from the file before anything else is admitted.
"""

import asyncio
import os
import sqlite3
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import aiosqlite
import orjson

from proxy.core.accounts import Accounts
from proxy.core.ledger import Expire, Facts, Hold, HoldState, Outcome, Phase, Projection, Settle, Step, Void
from proxy.core.limits import Budget
from proxy.core.windows import Calendar, Sliding
from proxy.stores.ledger import schema
from proxy.stores.ledger.contract import CannotOpen, LedgerUnavailable
from proxy.units import Credits

QUARTER_S: Final = 900
TOTALS_KEPT: Final = 50_000
"""Totals of single quarters kept in memory, some 20 MB, before old ones are let go."""

CHECKED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Largest file that is checked whole at each start; a check reads some 500 MB a second."""

Dimensions = tuple[int, Facts]


class SqliteLedger:
    """One file, one process."""

    def __init__(self, database: aiosqlite.Connection, path: Path, budgets: Iterable[Budget]) -> None:
        self._database: Final = database
        self._path: Final = path
        self._budgets = tuple(budgets)
        self._totals: dict[Dimensions, tuple[int, int]] = {}
        self._waiting: list[tuple[Sequence[Step], asyncio.Future[list[Outcome]]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._stale = False
        self.projection = Projection(accounts=Accounts(budgets))
        self.unknown: frozenset[str] | None = None
        """Holds of an earlier process without an ending: they count as spent until somebody says what they cost."""

    @classmethod
    async def open(
        cls, path: Path, budgets: Iterable[Budget] = (), *, now_s: float, full: bool = True
    ) -> "SqliteLedger":
        """Open or make the file; raises CannotOpen.

        full: commits survive a power cut; otherwise only a crash of this process.
        """
        _make_private(path)
        database = await aiosqlite.connect(path, isolation_level=None)
        try:
            await _prepare(database, path, full=full)
            ledger = cls(database, path, budgets)
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
        return await asyncio.shield(self.submit(steps))

    def submit(self, steps: Sequence[Step]) -> asyncio.Future[list[Outcome]]:
        """Hand a batch in; it is written with the next commit, whatever becomes of the future."""
        future: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._waiting.append((steps, future))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_all())
        return future

    def rebudget(self, budgets: Iterable[Budget]) -> None:
        """The accounts are made anew from the file before the next batch is judged."""
        self._budgets = tuple(budgets)
        self._stale = True
        self.submit([])

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                if self._stale:
                    await self._rebuild(self._latest_s(batch))
                    self._stale = False
                outcomes, rows = self._decide(batch)
                if rows:
                    await self._database.execute_fetchall(schema.APPEND, [orjson.dumps(rows).decode()])
            except (sqlite3.Error, ValueError) as error:
                # Memory may be ahead of the file now: nothing is decided on it any more.
                self._stale = True
                for _, future in batch:
                    if not future.done():
                        future.set_exception(LedgerUnavailable(str(error)))
                        future.exception()  # a caller that was cancelled will not ask
                continue
            for (_, future), answer in zip(batch, outcomes, strict=True):
                if not future.done():
                    future.set_result(answer)

    @staticmethod
    def _latest_s(batch: Sequence[tuple[Sequence[Step], Any]]) -> float:
        return max((step.at_s for steps, _ in batch for step in steps), default=0.0)

    def _decide(self, batch: Sequence[tuple[Sequence[Step], Any]]) -> tuple[list[list[Outcome]], list[tuple[Any, ...]]]:
        """Judge each step in memory, and make the rows of those that were taken."""
        outcomes: list[list[Outcome]] = []
        rows: list[tuple[Any, ...]] = []
        for steps, _ in batch:
            answers = []
            for step in steps:
                outcome = self.projection.apply(step)
                if outcome is Outcome.OK:
                    rows.append(self._row(step))
                answers.append(outcome)
            outcomes.append(answers)
        return outcomes, rows

    def _forget_totals(self, now: int) -> None:
        """Let go of quarters that no open hold can still settle in; the file has them."""
        if len(self._totals) < TOTALS_KEPT:
            return
        oldest = min((int(state.at_s // QUARTER_S) for state in self.projection.holds.values()), default=now)
        for place in [place for place in self._totals if place[0] < min(oldest, now)]:
            del self._totals[place]

    def _row(self, step: Step) -> tuple[Any, ...]:
        match step:
            case Hold():
                return ("hold", step.hold, step.at_s, *_texts(step.facts), step.credits, 0, "", "", 0, None, None, None)
            case Settle():
                state = self.projection.known(step.hold)
                assert state is not None
                quarter = int(state.at_s // QUARTER_S)
                cost = step.charge
                was = self._totals.get((quarter, state.facts), (0, 0))
                self._forget_totals(quarter)
                total = self._totals[quarter, state.facts] = (was[0] + cost.credits, was[1] + cost.calls)
                said = (cost.credits, cost.calls, cost.basis.value, step.ending.value, int(cost.uncertain))
                return ("settle", step.hold, step.at_s, *_texts(state.facts), *said, quarter, *total)
            case Void():
                ended = (step.ending.value, int(step.uncertain))
                return ("void", step.hold, step.at_s, *_NOTHING, 0, 0, "", *ended, None, None, None)
            case Expire():
                return ("expire", step.hold, step.at_s, *_NOTHING, 0, 0, "", "", 0, None, None, None)

    # --- reading ---

    async def _all(self, statement: str, *values: Any) -> list[Any]:
        return list(await self._database.execute_fetchall(statement, values))

    async def _first_quarter(self, now_s: float) -> int:
        """The first quarter of an hour that an open window or an open hold needs."""
        ((oldest_s,),) = await self._all(schema.OLDEST_OPEN)
        begins = [b.window.window(now_s).start_s for b in self._budgets if isinstance(b.window, Calendar)]
        needed_s = min([now_s, *begins, *([] if oldest_s is None else [oldest_s])])
        return int(max(needed_s, 0.0) // QUARTER_S)

    async def _rebuild(self, now_s: float) -> None:
        """Make the projection anew from the file: totals of open windows, and open holds."""
        ((latest_s,),) = await self._all(schema.LATEST)
        now_s = max(now_s, latest_s or 0.0)
        projection = Projection(accounts=Accounts(self._budgets))
        accounts = projection.accounts
        assert isinstance(accounts, Accounts)
        self._totals = {}
        for quarter, spent, calls, *texts in await self._all(schema.TOTALS_SINCE, await self._first_quarter(now_s)):
            facts = _facts(texts)
            self._totals[quarter, facts] = (spent, calls)
            accounts.spent(facts, spent, quarter * QUARTER_S, kind=Calendar)
        longest_s = max((b.window.seconds for b in self._budgets if isinstance(b.window, Sliding)), default=0.0)
        for at_s, spent, *texts in await self._all(schema.SETTLED_SINCE, now_s - longest_s):
            accounts.spent(_facts(texts), spent, at_s, kind=Sliding)
        for team, spent in await self._all(schema.SPENT_BY_TEAM):
            projection.spent[team] = projection.spent.get(team, 0) + spent
        unknown = []
        for hold, at_s, held, *texts in await self._all(schema.OPEN_HOLDS):
            projection.reopen(hold, HoldState(_facts(texts), Phase.HELD, Credits(held), at_s))
            if self.unknown is None or hold in self.unknown:
                # Nobody waits for it to end, for nobody is left who would end it.
                accounts.lasts(hold)
                unknown.append(hold)
        self.projection = projection
        self.unknown = frozenset(unknown)

    async def verify(self) -> list[str]:
        """Everything in the file that does not add up; empty when it does."""
        problems = [said for (said,) in await self._all("PRAGMA integrity_check") if said != "ok"]
        wanted: dict[Dimensions, tuple[int, int]] = {}
        for quarter, *texts, spent, calls, at_s in await self._all(schema.REBUILT):
            if quarter != int(at_s // QUARTER_S):
                problems.append(f"a settlement stands in quarter {quarter}, its hold in {int(at_s // QUARTER_S)}")
            place = (quarter, _facts(texts))
            was = wanted.get(place, (0, 0))
            wanted[place] = (was[0] + spent, was[1] + calls)
        kept = {
            (quarter, _facts(texts)): (spent, calls)
            for quarter, spent, calls, *texts in await self._all(schema.TOTALS_SINCE, 0)
        }
        problems += [
            f"the total of quarter {quarter} for team {facts.team} is {kept.get((quarter, facts))}, its entries add up "
            f"to {wanted.get((quarter, facts))}"
            for quarter, facts in wanted.keys() | kept.keys()
            if kept.get((quarter, facts)) != wanted.get((quarter, facts))
        ]
        return problems

    async def close(self) -> None:
        """Finish what is being written and let go of the file."""
        if self._writer is not None:
            await asyncio.wait([self._writer])
        await self._database.close()


_NOTHING: Final = ("",) * len(schema.FACTS)


def _texts(facts: Facts) -> tuple[str, ...]:
    return tuple(getattr(facts, name) or "" for name in schema.FACTS)


def _facts(texts: Sequence[str]) -> Facts:
    team, key, route, model, suite, tool, credential, chatbot = texts
    return Facts(team, key, route, model or None, suite or None, tool or None, credential, chatbot or None)


def _make_private(path: Path) -> None:
    """The folder is the owner's alone, and so is the file, from its first byte on. Raises CannotOpen."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            if mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise CannotOpen(f"{path} cannot be written ({error.strerror}); give another folder with --data") from error


async def _prepare(database: aiosqlite.Connection, path: Path, *, full: bool) -> None:
    """Lock the file, check it, and bring it to this version. Raises CannotOpen and sqlite3 errors."""
    for pragma in (
        "busy_timeout = 0",
        "locking_mode = EXCLUSIVE",
        "journal_mode = WAL",
        f"synchronous = {'FULL' if full else 'NORMAL'}",
        "journal_size_limit = 67108864",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "foreign_keys = ON",
    ):
        await database.execute_fetchall(f"PRAGMA {pragma}")
    # The lock is taken by the first transaction and kept until the connection closes.
    await database.execute_fetchall("BEGIN IMMEDIATE")
    await database.execute_fetchall("COMMIT")
    if os.stat(path).st_size <= CHECKED_BYTES_MAX:  # noqa: PTH116  (one call, at the start)
        found = [row[0] for row in await database.execute_fetchall("PRAGMA quick_check")]
        if found != ["ok"]:
            raise sqlite3.DatabaseError(str(found[0]))
    version = next(iter(await database.execute_fetchall("PRAGMA user_version")))[0]
    if version == 0:
        await database.executescript(f"BEGIN; {schema.CREATE} COMMIT;")
    elif version > schema.VERSION:
        raise CannotOpen(f"{path} was written by a newer version of this program; use that one")
