"""Carrying a plan out: step by step, on over what is refused, and once more over what may work by then.

Every step leaves the service sound, and a plan is made from what the service holds. So an interruption at any moment
needs no mending: make a plan again and apply that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from proxy.groups.applied import Applied
from proxy.groups.client import GroupClient
from proxy.groups.faults import GroupsFault, NotLoggedIn, NotSent, Unfinished
from proxy.groups.plan import Plan
from proxy.groups.present import Progress
from proxy.groups.records import ItemFailure
from proxy.groups.steps import (
    AddMembers,
    ChangeFields,
    Create,
    Delete,
    Designate,
    Dismiss,
    MoveMembers,
    Place,
    RemoveMembers,
    SetAgent,
    SetCredit,
    SetModels,
    Step,
)
from proxy.groups.wanted import Ref

UNFINISHED_MAX: Final = 3
"""Calls in a row without a decision of the service; after these it counts as down."""

ONE_BY_ONE: Final = frozenset({"not_enterprise", "member_quota_required"})
"""Codes of items that a bulk call cannot change and a call for the group alone may."""


class NotThere(Exception):
    """A group that an earlier step should have created is not there."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that was refused, and why."""

    step: Step
    why: str


@dataclass(slots=True)
class Outcome:
    """done: steps carried out. stopped: why the rest was not tried, "" where all was."""

    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    untried: int = 0
    stopped: str = ""

    @property
    def complete(self) -> bool:
        return not self.failures and not self.stopped


async def apply(client: GroupClient, plan: Plan, applied: Applied, progress: Progress) -> Outcome:
    """Every step in order. Those refused are tried once more at the end, as a later step may have cleared the way."""
    carrying = _Carrying(client, applied, progress, len(plan.steps))
    try:
        again = [failure.step for failure in await carrying.all(plan.steps)]
        if again and carrying.outcome.done and not carrying.outcome.stopped:
            carrying.outcome.failures = await carrying.all(again)
    finally:
        applied.save()
    return carrying.outcome


class _Carrying:
    def __init__(self, client: GroupClient, applied: Applied, progress: Progress, total: int) -> None:
        self.outcome: Final = Outcome()
        self._client: Final = client
        self._applied: Final = applied
        self._progress: Final = progress
        self._total: Final = total
        self._created: Final[dict[str, int]] = {}
        self._unfinished = 0

    async def all(self, steps: Sequence[Step]) -> list[Failure]:
        """Returns what failed, which the outcome holds too."""
        failures: list[Failure] = []
        for number, step in enumerate(steps):
            try:
                if why := await self._one(step):
                    failures.append(Failure(step, why))
                else:
                    self.outcome.done += 1
                    self._progress("applying", self.outcome.done, self._total)
                self._unfinished = 0
            except NotThere as fault:
                failures.append(Failure(step, str(fault)))
            except GroupsFault as fault:
                failures.append(Failure(step, fault.message))
                self._unfinished = self._unfinished + 1 if isinstance(fault, Unfinished) else 0
                if isinstance(fault, NotSent | NotLoggedIn) or self._unfinished >= UNFINISHED_MAX:
                    self.outcome.stopped = fault.message
                    self.outcome.untried = len(steps) - number - 1
                    break
        self.outcome.failures = failures
        return failures

    async def _one(self, step: Step) -> str:
        """Carry out one step; returns why parts of it failed, "" where none did."""
        client, ident = self._client, self._ident
        match step:
            case Create(group, new, parent):
                made = await client.create({**new, "parent_id": None if parent is None else ident(parent)})
                self._created[str(group)] = made.id
            case ChangeFields(group, change):
                await client.change(ident(group), change)
            case Place(group, parent):
                await client.move(ident(group), None if parent is None else ident(parent))
            case MoveMembers(group, target, members):
                await client.move_members(ident(group), ident(target), members)
            case AddMembers(group, members):
                await client.add_members(ident(group), members)
            case RemoveMembers(group, members):
                await client.remove_members(ident(group), members)
            case Designate(group, member, below):
                await client.designate(ident(group), member, include_descendants=below)
            case Dismiss(group, member):
                await client.dismiss(ident(group), member)
            case SetAgent(group, agent, enabled):
                await client.set_agent(ident(group), agent, enabled)
            case SetCredit(groups, quota):
                return await self._set_credit(groups, quota)
            case SetModels(groups, models):
                return await self._set_models(groups, dict(models))
            case Delete(group):
                await client.delete(ident(group))
                self._applied.forget(ident(group))
            case _:
                assert_never(step)
        return ""

    async def _set_credit(self, groups: Sequence[Ref], quota: int | None) -> str:
        done = await self._client.set_credit_limits([self._ident(group) for group in groups], quota)
        failed = []
        for item in done.failed:
            if item.code in ONE_BY_ONE:
                await self._client.change(item.group_id, {"credit_quota": quota})
            else:
                failed.append(item)
        return _told(failed)

    async def _set_models(self, groups: Sequence[Ref], models: Mapping[int, bool]) -> str:
        done = await self._client.set_models([self._ident(group) for group in groups], models)
        for ident in done.succeeded:
            self._applied.note(ident, models)
        self._applied.save()
        return _told(done.failed)

    def _ident(self, group: Ref) -> int:
        if isinstance(group, int):
            return group
        if group not in self._created:
            raise NotThere(f"group “{group}” was not created")
        return self._created[group]


def _told(failed: Sequence[ItemFailure]) -> str:
    """Reasons and the groups they hold for."""
    by_code: dict[str, list[int]] = {}
    for item in failed:
        by_code.setdefault(item.code, []).append(item.group_id)
    return "; ".join(f"{code} for {', '.join(map(str, idents))}" for code, idents in by_code.items())
