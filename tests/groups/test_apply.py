from pathlib import Path

import orjson
import pytest

from proxy.config.problem import Problems
from proxy.emulator.groups.service import Failure, running_groups
from proxy.groups.applied import Applied
from proxy.groups.apply import apply
from proxy.groups.compare import compare
from proxy.groups.groupsfile import GroupsFile
from proxy.groups.present import silent
from proxy.groups.steps import sentence
from proxy.groups.wanted import Wanted
from tests.groups.services import client_of, targets


class Bench:
    """Plans and applies entries without a file."""

    def __init__(self, service, client, folder):
        self.service, self.client, self.path = service, client, Path(folder) / "groups.yaml"

    async def plan(self, *entries):
        file = GroupsFile(None, entries)
        return await compare(self.client, file, self.service.url, self.applied(), silent)

    async def says(self, *entries):
        plan = await self.plan(*entries)
        return [sentence(step, plan.names) for step in plan.steps]

    async def apply(self, *entries):
        """The outcome, and what was asked of the service for it after planning."""
        plan = await self.plan(*entries)
        before = len(self.service.journal)
        outcome = await apply(self.client, plan, self.applied(), silent)
        return outcome, targets(self.service)[before:]

    def applied(self):
        return Applied.beside(self.path, self.service.url)


@pytest.fixture
async def bench(service, client, tmp_path):
    return Bench(service, client, tmp_path)


async def test_a_plan_reads_as_what_will_be_done(bench):
    assert await bench.says(
        Wanted(id=2, en_name="Eng", group_quota=None, agents={"korea_in_data": True}, models={5: False, 6: True}),
        Wanted(id=3, parent=None, administrators={103: True}, members=(103, "DANA@example.org")),
        Wanted(en_name="Lab", ko_name="랩", type_id=1, parent="Eng", member_quota=3, members=(101, 102, 104, 105)),
        Wanted(id=5, delete=True),
        Wanted(id=1, members=(101, 102, 103)),
    ) == [
        "change “Engineering” (2): en_name Eng, credit_quota none",
        "move “Computing” (3) to the root",
        "create “Lab” below “Engineering” (2): ko_name 랩, member_group_type_id 1, member_credit_quota 3",
        "add member 104 to “Computing” (3)",
        "add 4 members to “Lab”",
        "make member 103 an administrator of “Computing” (3), groups below included",
        "switch agent korea_in_data on for “Engineering” (2)",
        "set models for “Engineering” (2): 5 blocked, 6 allowed",
        "remove members 104, 105 from “Default” (1)",
        "delete “Hydrology” (5)",
    ]


async def test_what_the_file_does_not_name_is_told_and_left(bench):
    plan = await bench.plan(Wanted(id=2, group_quota=1))
    assert set(plan.untouched) == {1, 3, 4, 5, 6}


async def test_people_nobody_knows_are_problems(bench):
    with pytest.raises(Problems, match="members: nobody has the address x@y"):
        await bench.plan(Wanted(id=2, members=("x@y",)))


async def test_equal_limits_go_in_one_call(bench):
    for ident in (3, 4):
        bench.service.tenant.groups[ident].member_quota = 5
    wanted = [Wanted(id=ident, group_quota=70) for ident in (2, 3, 4)]
    outcome, asked = await bench.apply(*wanted)
    assert (outcome.complete, asked) == (True, ["PATCH bulk/credit-limit/"])
    assert (await bench.plan(*wanted)).steps == ()


async def test_without_the_enterprise_plan_limits_are_set_one_by_one(tmp_path):
    async with running_groups(enterprise=False) as service, client_of(service) as client:
        bench = Bench(service, client, tmp_path)
        service.tenant.groups[3].member_quota = 5
        wanted = [Wanted(id=ident, group_quota=70) for ident in (2, 3)]
        outcome, asked = await bench.apply(*wanted)
        assert (outcome.complete, asked) == (True, ["PATCH bulk/credit-limit/", "PATCH 2/", "PATCH 3/"])
        assert (await bench.plan(*wanted)).steps == ()


async def test_groups_without_a_limit_per_member_are_not_put_into_the_bulk_call(bench):
    _, asked = await bench.apply(Wanted(id=3, group_quota=70), Wanted(id=4, group_quota=70))
    assert asked == ["PATCH 3/", "PATCH 4/"]


async def test_equal_model_permissions_go_in_one_call_and_are_remembered(bench):
    wanted = [Wanted(id=ident, models={5: False, 6: True}) for ident in (2, 3, 4)]
    outcome, asked = await bench.apply(*wanted)
    assert (outcome.complete, asked) == (True, ["PATCH bulk/model-permissions/"])
    plan = await bench.plan(*wanted)
    assert (plan.steps, "cannot be read back" in plan.notes[0]) == ((), True)
    assert await bench.says(Wanted(id=2, models={5: True, 6: True})) == ["set models for “Engineering” (2): 5 allowed"]


async def test_model_permissions_that_somebody_changed_since_are_set_again(bench):
    """The count of allowed models is all that shows."""
    wanted = Wanted(id=2, models={5: False})
    await bench.apply(wanted)
    bench.service.tenant.groups[2].models.clear()
    assert await bench.says(wanted) == ["set models for “Engineering” (2): 5 blocked"]


async def test_what_is_refused_does_not_stop_the_rest(bench):
    outcome, _ = await bench.apply(
        Wanted(id=4, delete=True), Wanted(id=3, members=(103, 9999)), Wanted(id=6, group_quota=3)
    )
    assert {failure.why.partition(":")[0] for failure in outcome.failures} == {"400", "404"}
    assert (outcome.done, outcome.stopped) == (1, "")
    assert bench.service.tenant.groups[6].group_quota == 3


async def test_what_a_later_step_clears_the_way_for_is_tried_again(bench):
    """One course per member: the new one can be joined once the old one is deleted."""
    outcome, asked = await bench.apply(
        Wanted(id=5, delete=True), Wanted(en_name="Limnology", ko_name="호소학", type_id=3, members=(103,))
    )
    assert outcome.complete
    assert asked == ["POST ", "POST 1001/members/", "DELETE 5/", "POST 1001/members/"]


async def test_who_changes_the_course_is_moved_in_one_step(bench):
    outcome, asked = await bench.apply(
        Wanted(id=5, members=()), Wanted(en_name="Limnology", ko_name="호소학", type_id=3, members=(103,))
    )
    assert (outcome.complete, asked) == (True, ["POST ", "POST 5/members/move/"])


async def test_steps_of_a_group_that_was_not_created_are_told_as_such(bench):
    plan = await bench.plan(Wanted(en_name="New", ko_name="새", type_id=99, agents={"law_in_data": False}))
    outcome = await apply(bench.client, plan, bench.applied(), silent)
    assert [failure.why for failure in outcome.failures] == [
        "400: POST /v1/admin/member-groups/: group type 99 not found",
        "group “New” was not created",
    ]


async def test_a_service_that_is_down_is_not_asked_for_every_step(bench):
    wanted = [Wanted(id=ident, group_quota=ident) for ident in range(1, 7)]
    plan = await bench.plan(*wanted)
    bench.service.break_after(1)
    outcome = await apply(bench.client, plan, bench.applied(), silent)
    assert (outcome.done, len(outcome.failures), outcome.untried) == (1, 3, 2)
    assert "no whole answer" in outcome.stopped


async def test_a_token_that_ends_on_the_way_stops_the_work(bench):
    plan = await bench.plan(*(Wanted(id=ident, group_quota=ident) for ident in range(1, 7)))
    bench.service.failing.append(Failure(401))
    outcome = await apply(bench.client, plan, bench.applied(), silent)
    assert (outcome.done, outcome.untried) == (0, 5)


async def test_a_file_of_another_tenant_is_refused(bench):
    with pytest.raises(Problems, match="is for https://other"):
        await compare(bench.client, GroupsFile("https://other.example", ()), bench.service.url, bench.applied(), silent)
    assert len(bench.service.journal) == 0


async def test_a_group_administrator_applies_what_is_delegated_and_hears_of_the_rest(service, tmp_path):
    async with client_of(service, "delegate") as client:
        bench = Bench(service, client, tmp_path)
        outcome, _ = await bench.apply(
            Wanted(id=2, group_quota=7, administrators={102: None, 103: None}, members=(102, 103)),
            Wanted(en_name="Lab", ko_name="랩", type_id=1, parent=3, member_quota=2),
        )
        assert outcome.complete
        with pytest.raises(Problems, match="there is no group 4, or it is not delegated"):
            await bench.plan(Wanted(id=4))
        outcome, _ = await bench.apply(
            Wanted(en_name="Top", ko_name="위", type_id=1), Wanted(id=2, administrators={102: False, 103: None})
        )
        assert ["403" in failure.why for failure in outcome.failures] == [True, True]


async def test_bodies_hold_what_changes_and_nothing_else(bench):
    await bench.apply(Wanted(id=2, ko_name="공학부", en_name="Engineering", group_quota=9, member_quota=100))
    assert orjson.loads(bench.service.journal[-1].body) == {"credit_quota": 9}
