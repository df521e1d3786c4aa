"""Every operation of the member-group service, typed. Quotas are whole credits, None is no limit.

Long lists are split: bulk calls at the documented 500 groups, members at a size of ours. What fails item by item is
collected; everything else is raised as one of `proxy.groups.faults`.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypedDict, TypeVar

from proxy.config.secret import Secret
from proxy.config.values import BaseUrl
from proxy.groups import records
from proxy.groups.faults import Conflict, NotFound, NotPermitted, RuleBroken
from proxy.groups.records import Administrator, Agent, Bulk, Candidate, Group, ItemFailure, Named, Overview, each, field
from proxy.groups.wire import PAUSE, Pause, Wire, connected

T = TypeVar("T")

ADMIN: Final = "/v1/admin/member-groups/"
LISTS: Final = "/v1/member-groups/"

BULK_MAX: Final = 500
"""Groups in one bulk request; the service's limit."""

MEMBERS_MAX: Final = 500
"""Members in one request. The service names no limit; one request must still end before anybody's time-out."""


class Change(TypedDict, total=False):
    """Fields of a group to change; those left out stay. A quota of None is cleared."""

    ko_name: str
    en_name: str
    credit_quota: int | None
    member_credit_quota: int | None
    member_group_type_id: int
    is_visible_to_admin_only: bool


class NewGroup(TypedDict, total=False):
    """Fields of a group to create; the names are required."""

    ko_name: str
    en_name: str
    member_group_type_id: int | None
    member_credit_quota: int | None
    group_credit_quota: int | None
    is_visible_to_admin_only: bool
    parent_id: int | None


class GroupClient:
    """The service as seen by one account; what the account may do, the service decides."""

    def __init__(self, wire: Wire) -> None:
        self.wire: Final = wire

    async def create(self, new: NewGroup) -> Group:
        return records.group(await self.wire.call("POST", ADMIN, new))

    async def read(self, ident: int, type_id: int | None = None) -> Group:
        """A group; 0 is the pseudo-group of members without a group, or without one of `type_id`."""
        return records.group(
            await self.wire.call("GET", f"{ADMIN}{ident}/", query=_query(member_group_type_id=type_id))
        )

    async def change(self, ident: int, change: Change) -> Group:
        return records.group(await self.wire.call("PATCH", f"{ADMIN}{ident}/", change))

    async def delete(self, ident: int) -> None:
        await self.wire.call("DELETE", f"{ADMIN}{ident}/")

    async def move(self, ident: int, parent_id: int | None) -> None:
        """Below another group, or to the root."""
        await self.wire.call("PATCH", f"{ADMIN}{ident}/parent/", {"parent_id": parent_id})

    async def add_members(self, ident: int, members: Iterable[int]) -> None:
        for some in in_parts(members, MEMBERS_MAX):
            await self.wire.call("POST", f"{ADMIN}{ident}/members/", {"member_ids": some})

    async def remove_member(self, ident: int, member: int) -> None:
        await self.wire.call("DELETE", f"{ADMIN}{ident}/members/{member}/")

    async def remove_members(self, ident: int, members: Iterable[int]) -> None:
        for some in in_parts(members, MEMBERS_MAX):
            await self.wire.call("POST", f"{ADMIN}{ident}/members/remove-bulk/", {"member_ids": some})

    async def move_members(
        self, source: int, target: int, members: Iterable[int], *, apply_quota: bool = False
    ) -> None:
        """apply_quota: the target's limit holds for them at once."""
        for some in in_parts(members, MEMBERS_MAX):
            body = {"member_ids": some, "target_member_group_id": target, "apply_quota": apply_quota}
            await self.wire.call("POST", f"{ADMIN}{source}/members/move/", body)

    async def addable_members(self, ident: int, search: str | None = None) -> list[Candidate]:
        """Members of the tenant, and whether each may be added; those of the group are among them, and say so."""
        data = await self.wire.call("GET", f"{ADMIN}{ident}/addable-members/", query=_query(search=search))
        return each(data, records.candidate)

    async def administrators(self, ident: int) -> list[Administrator]:
        data = await self.wire.call("GET", f"{ADMIN}{ident}/admins/")
        return each(field(data, "admins"), records.administrator)

    async def designate(self, ident: int, member: int, *, include_descendants: bool | None = None) -> None:
        """include_descendants: None leaves it; only a master administrator may give another value."""
        body = {"member_id": member}
        await self.wire.call(
            "POST", f"{ADMIN}{ident}/admins/", {**body, **_given(include_descendants=include_descendants)}
        )

    async def dismiss(self, ident: int, member: int) -> None:
        await self.wire.call("DELETE", f"{ADMIN}{ident}/admins/{member}/")

    async def set_credit_limits(self, idents: Iterable[int], quota: int | None) -> Bulk:
        """One limit for many groups. Each needs a limit per member, and the tenant the enterprise plan."""
        return await self._bulk("bulk/credit-limit/", idents, {"group_credit_quota": quota})

    async def set_models(self, idents: Iterable[int], models: Mapping[int, bool]) -> Bulk:
        """Model id to whether it may be used, for many groups; models not named stay. It cannot be read back."""
        rules = [{"llm_model_id": model, "is_available": allowed} for model, allowed in models.items()]
        return await self._bulk("bulk/model-permissions/", idents, {"model_permissions": rules})

    def overview(
        self,
        *,
        type_id: int | None = None,
        parent_id: int | None = None,
        search: str | None = None,
        order_by: str = "name.asc",
        size: int = 100,
    ) -> AsyncIterator[Overview]:
        """Usage and limits of all groups in the account's scope, page by page.

        parent_id: its direct children only. order_by: `name`, `credit_used_month` or `utilization`, `.asc` or `.desc`.
        """
        query = _query(
            member_group_type_id=type_id, parent_id=parent_id, search_term=search, order_by=order_by, size=size
        )
        return self._pages(f"{ADMIN}usage-overview/", query, records.overview)

    async def agents(self, ident: int) -> list[Agent]:
        return each(await self.wire.call("GET", f"{ADMIN}{ident}/agents/"), records.agent)

    async def set_agent(self, ident: int, agent: str, enabled: bool | None) -> None:
        """None takes the group's override away."""
        await self.wire.call("PATCH", f"{ADMIN}{ident}/agents/", {"agent_type": agent, "is_enabled": enabled})

    async def permissions(self, ident: int) -> Any:
        """The permission toggles as the service shows them; their names are not documented."""
        return await self.wire.call("GET", f"{ADMIN}{ident}/permission-set/")

    async def set_permissions(self, ident: int, body: Mapping[str, Any]) -> Any:
        """body: in the form that `permissions` shows; true allows, false blocks, None inherits."""
        return await self.wire.call("PATCH", f"{ADMIN}{ident}/permission-set/", body)

    def all_groups(self) -> AsyncIterator[Named]:
        """Groups that ordinary users see; needs no administrator."""
        return self._pages(LISTS, {}, records.named)

    def managed_groups(self) -> AsyncIterator[Named]:
        """Groups the account manages; needs no administrator."""
        return self._pages(f"{LISTS}managed/", {}, records.named)

    async def _pages(self, path: str, query: Mapping[str, str], read: Callable[[Any], T]) -> AsyncIterator[T]:
        page, pages = 1, 1
        while page <= pages:
            data = await self.wire.call("GET", path, query={**query, "page": str(page)})
            for row in each(field(data, "results"), read):
                yield row
            # Groups may come and go while we read; the newest count holds.
            pages = int(field(field(data, "pagination"), "total_pages"))
            page += 1

    async def _bulk(self, path: str, idents: Iterable[int], body: Mapping[str, Any]) -> Bulk:
        """All requests are sent: one that is refused as a whole fails for its groups and stops no other."""
        succeeded: list[int] = []
        failed: list[ItemFailure] = []
        for some in in_parts(idents, BULK_MAX):
            try:
                done = records.bulk(await self.wire.call("PATCH", f"{ADMIN}{path}", {"member_group_ids": some, **body}))
            except (RuleBroken, NotPermitted, NotFound, Conflict) as fault:
                failed += [ItemFailure(ident, fault.message) for ident in some]
            else:
                succeeded += done.succeeded
                failed += done.failed
        return Bulk(tuple(succeeded), tuple(failed))


@asynccontextmanager
async def group_client(base: BaseUrl, token: Secret, pause: Pause = PAUSE) -> AsyncIterator[GroupClient]:
    """A client for as long as the block lasts. pause: waits so many seconds before a repetition."""
    async with connected(base, token, pause) as wire:
        yield GroupClient(wire)


def in_parts(items: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    """The items in their order, at most `size` at a time; each once, however often it was named."""
    unique = list(dict.fromkeys(items))
    for start in range(0, len(unique), size):
        yield unique[start : start + size]


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _query(**fields: Any) -> dict[str, str]:
    return {name: str(value) for name, value in _given(**fields).items()}
