import orjson
import pytest

from proxy.config.problem import Problems
from proxy.emulator.groups.service import Failure, running_groups
from proxy.groups.apply import apply
from proxy.groups.present import silent
from proxy.groups.wanted import Wanted
from tests.groups.services import Bench, client_of


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


async def test_what_was_applied_to_a_group_is_forgotten_with_the_group(bench):
    await bench.apply(*(Wanted(id=ident, models={5: False}) for ident in (3, 4)))
    await bench.apply(Wanted(id=3, delete=True))
    assert bench.applied().models == {4: {5: False}}
