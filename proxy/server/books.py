"""The books as the server uses them: a hold is waited for, its ending never is.

Ending a hold is a plain call that cannot be cancelled: the entry is written by a task of its own, which a drain waits
for. So a handler may be cancelled at any `await` and its hold still comes to an end. Nobody waits for an ending, so it
rides with the next hold; only where somebody waits for what it frees is it written at once.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.core.account import Refusal
from proxy.core.accounts import Accounts
from proxy.core.charges import Ending
from proxy.core.ledger import Hold, Outcome, Settle, Step, Void
from proxy.core.limits import Budget
from proxy.core.riders import KeptOutcome, KeptTurn, Rider
from proxy.errors import ProxyError
from proxy.stores.ledger.commit import Commit, LedgerUnavailable
from proxy.stores.ledger.contract import LedgerStore

_OK: Final = Outcome.OK
"""Bound once: looking a member up in its enum takes as long as a call."""

RETRY_S: Final = 0.5
"""Pause before an ending that could not be written is tried again; it is kept until it is."""


LAST_TRY_S: Final = 2 * RETRY_S
"""How long a closing ledger is given for endings that it did not take before."""


@dataclass(frozen=True, slots=True)
class TeamFigures:
    """Units of 1e-8 credit."""

    spent: int
    held: int


class Books:
    """Holds and endings on one home of the ledger."""

    def __init__(self, store: LedgerStore) -> None:
        self._store: Final = store
        self._asked: Final[set[Commit]] = set()
        self._unwritten = 0
        self._written: Final = asyncio.Event()
        self._written.set()
        self._ending: asyncio.Future[None] | None = None
        self._awaited = 0
        self.available = True
        self.told: Callable[[str], None] = lambda _why: None
        """Told why, once each time the ledger stops taking entries."""
        self.back: Callable[[], None] = lambda: None
        """Told once when it takes them again."""

    def _away(self, error: LedgerUnavailable) -> None:
        if self.available:
            self.told(str(error))
        self.available = False

    def _took(self) -> None:
        if not self.available:
            self.back()
        self.available = True

    async def hold(self, hold: Hold, riders: Sequence[Rider] = ()) -> Refusal | None:
        """Commit a hold; the refusal where it does not fit a budget. Raises ProxyError when the ledger is away.

        riders: written in the same commit; those that name the hold only where it was taken.
        A caller cancelled while the commit runs has its hold voided as soon as the commit returns.
        """
        commit = self._submit([hold, *riders])
        try:
            outcome = (await commit)[0]
        except asyncio.CancelledError:
            commit.then(self._asked.discard)
            commit.then(lambda done: self._void_after(done, hold))
            raise
        except LedgerUnavailable as error:
            raise self._not_taken(commit, error) from error
        self._taken(commit)
        if outcome is _OK:
            return None
        assert outcome is Outcome.OVER_BUDGET, outcome
        # Nothing ran in between, so the accounts still say why.
        return self.accounts.judge(hold.facts, hold.credits, hold.at_s) or await self.hold(hold, riders)

    async def write(self, steps: Sequence[Step]) -> list[Outcome]:
        """Commit steps that somebody waits for. Raises ProxyError when the ledger is away.

        Who is cancelled meanwhile does not know whether they were written.
        """
        commit = self._submit(steps)
        try:
            outcomes = await commit
        except asyncio.CancelledError:
            commit.then(self._asked.discard)
            raise
        except LedgerUnavailable as error:
            raise self._not_taken(commit, error) from error
        self._taken(commit)
        return outcomes

    async def keep(self, riders: Sequence[Rider]) -> None:
        """Commit rows before going on; where the ledger is away, go on, and they are kept until it takes them."""
        with contextlib.suppress(LedgerUnavailable):
            await self._end(riders, soon=True)

    def note(self, riders: Sequence[Rider]) -> None:
        """Write rows that nobody waits for; they are kept until the ledger takes them."""
        self._end(riders)

    def _submit(self, steps: Sequence[Step]) -> Commit:
        """Hand in steps that somebody waits for."""
        commit = self._store.submit(steps)
        self._asked.add(commit)
        return commit

    def _taken(self, commit: Commit) -> None:
        self._asked.discard(commit)
        self._took()

    def _not_taken(self, commit: Commit, error: LedgerUnavailable) -> ProxyError:
        self._asked.discard(commit)
        self._away(error)
        return ProxyError(
            "ledger_unavailable",
            "The ledger cannot take entries now, so nothing that spends is admitted. Whoever runs the proxy finds "
            "the cause in its log.",
        )

    @property
    def store(self) -> LedgerStore:
        """The home, for what is asked of it seldom."""
        return self._store

    @property
    def settled(self) -> int:
        """All that was ever spent, in units of 1e-8 credit."""
        return sum(self._store.projection.spent.values())

    @property
    def held(self) -> int:
        """What open calls hold, in units of 1e-8 credit."""
        return sum(self._store.projection.held.values())

    @property
    def accounts(self) -> Accounts:
        """The accounts of the policy in force."""
        accounts = self._store.projection.accounts
        assert isinstance(accounts, Accounts)
        return accounts

    async def rebudget(self, budgets: Sequence[Budget]) -> None:
        """Judge by these budgets from now on; each begins with what its window already used.

        Returns when the accounts are made; where the ledger is away, that is when it is back.
        """
        with contextlib.suppress(LedgerUnavailable):
            await self._store.rebudget(budgets)

    def lasts(self, hold: str) -> None:
        """A hold belongs to an operation from now on."""
        self.accounts.lasts(hold)

    def next_ending(self) -> "asyncio.Future[None]":
        """Done when the next hold has ended; ask before judging, so that no ending is missed."""
        if self._ending is None or self._ending.done():
            self._ending = asyncio.get_running_loop().create_future()
        return self._ending

    async def ending(self, ended: "asyncio.Future[None]", within_s: float) -> None:
        """Wait for what `next_ending` gave, at most so long; endings are written at once meanwhile."""
        self._awaited += 1
        self._store.push()
        try:
            await asyncio.wait([ended], timeout=within_s)
        finally:
            self._awaited -= 1

    def _void_after(self, commit: Commit, hold: Hold) -> None:
        if commit.fault is None and commit.outcomes[0] is Outcome.OK:
            self.end(Void(hold.hold, Ending.NEVER_SENT, hold.at_s))

    def end(self, step: Settle | Void, riders: Sequence[Rider] = ()) -> None:
        """Write an ending, and riders with it; returns at once and cannot fail."""
        self._end((step, *riders))

    async def turns(self) -> Sequence[KeptTurn]:
        """Every turn that is kept."""
        return await self._store.turns(0.0)

    def _end(self, steps: Sequence[Step], *, soon: bool = False) -> Commit:
        self._unwritten += 1
        self._written.clear()
        return self._try(steps, soon=soon)

    def _try(self, steps: Sequence[Step], *, soon: bool = False) -> Commit:
        commit = self._store.submit(steps, soon=soon)
        if self._awaited:
            self._store.push()
        commit.then(self._ended)
        return commit

    def _ended(self, commit: Commit) -> None:
        if (fault := commit.fault) is not None:
            # Kept until the ledger takes it.
            self._away(fault)
            asyncio.get_running_loop().call_later(RETRY_S, self._try, commit.steps)
            return
        self._took()
        self._unwritten -= 1
        if not self._unwritten:
            self._written.set()
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(None)

    async def outcome(self, team: str, key: str) -> KeptOutcome | None:
        """What is known of a call with an idempotency key; what was written before is in it."""
        return await self._store.outcome(team, key)

    def figures(self, team: str) -> "TeamFigures":
        """What a team has spent and holds."""
        projection = self._store.projection
        return TeamFigures(projection.spent.get(team, 0), projection.held.get(team, 0))

    @property
    def open_holds(self) -> int:
        """Holds without an ending in the home."""
        return self._store.projection.open_holds

    async def written(self) -> None:
        """Wait until every ending so far is in the home, however long that takes."""
        self._awaited += 1
        self._store.push()
        try:
            await self._written.wait()
        finally:
            self._awaited -= 1

    @property
    def unwritten(self) -> int:
        """Endings that are not in the home yet."""
        return self._unwritten

    @property
    def unanswered(self) -> int:
        """Holds and other steps that somebody asked to have written, and that the home neither took nor refused yet."""
        return len(self._asked)

    async def close(self) -> None:
        """Write what is left and close the home. What it does not take stays held, and is in doubt after a start."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_TRY_S):
                await self.written()
        await self._store.close()
