import pytest

from proxy.config.problem import Problems
from proxy.groups.compare import compare
from proxy.groups.groupsfile import GroupsFile
from proxy.groups.present import silent
from proxy.groups.wanted import Wanted


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


async def test_model_permissions_that_somebody_changed_since_are_set_again(bench):
    """The count of allowed models is all that shows."""
    wanted = Wanted(id=2, models={5: False})
    await bench.apply(wanted)
    bench.service.tenant.groups[2].models.clear()
    assert await bench.says(wanted) == ["set models for “Engineering” (2): 5 blocked"]


async def test_a_file_of_another_tenant_is_refused(bench):
    with pytest.raises(Problems, match="is for https://other"):
        await compare(bench.client, GroupsFile("https://other.example", ()), bench.service.url, bench.applied(), silent)
    assert len(bench.service.journal) == 0


async def test_only_what_the_file_speaks_of_is_read(bench):
    await bench.plan(Wanted(id=2, group_quota=1, ko_name="a"), Wanted(en_name="N", ko_name="n"))
    assert bench.asked() == ["GET usage-overview/"]
    await bench.plan(
        Wanted(id=2, admin_only=True), Wanted(id=3, agents={"law_in_data": True}), Wanted(id=4, administrators={}),
        Wanted(id=5, members=()), Wanted(id=6, members=()),
    )  # fmt: skip
    # Nobody is in group 6, and the overview says so.
    assert sorted(bench.asked()[1:]) == [
        "GET 2/", "GET 3/agents/", "GET 4/admins/", "GET 5/addable-members/", "GET usage-overview/",
    ]  # fmt: skip


async def test_people_named_by_address_are_looked_up_once(bench):
    await bench.plan(Wanted(id=6, members=("ada@example.org", "bora@example.org")), Wanted(id=3, parent=None))
    assert bench.asked() == ["GET usage-overview/", "GET 1/addable-members/"]


async def test_a_switch_that_equals_the_tenants_default_is_left_alone(bench):
    switches = {"law_in_data": True, "korea_in_data": None, "univ_in_data": False}
    entries = (Wanted(id=2, agents=switches), Wanted(en_name="N", ko_name="n", agents=switches))
    assert [line for line in await bench.says(*entries) if "switch" in line] == [
        "switch agent univ_in_data off for “Engineering” (2)",
        "switch agent univ_in_data off for “N”",
    ]


async def test_limits_of_many_groups_are_told_in_one_line(bench):
    for group in bench.service.tenant.groups.values():
        group.member_quota = 1
    entries = [Wanted(id=ident, group_quota=None if ident == 2 else 1234) for ident in range(1, 7)]
    assert await bench.says(*entries) == [
        "change “Engineering” (2): credit_quota none",
        "set the credit limit of “Default” (1), “Computing” (3), “Seoul” (4) and 2 more groups to 1,234 credits",
    ]
