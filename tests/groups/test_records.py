import pytest

from proxy.groups import records
from proxy.groups.faults import Unreadable
from proxy.groups.records import Agent, Bulk, ItemFailure

OVERVIEW = {
    "id": 1, "ko_name": "가", "en_name": "A", "member_group_type_id": None, "parent_id": None, "member_count": 0,
    "group_credit_quota": 10.0, "member_credit_quota": 1.75, "credit_used_month": 0.5, "allowed_model_count": 3,
    "total_model_count": 4,
}  # fmt: skip


def test_quotas_are_read_as_whole_credits():
    row = records.overview(OVERVIEW)
    assert (row.group_quota, row.member_quota, row.used_month) == (10, 1, 0.5)


@pytest.mark.parametrize("name", OVERVIEW)
def test_a_field_that_is_missing_or_of_another_kind_is_named(name):
    for broken in ({key: value for key, value in OVERVIEW.items() if key != name}, {**OVERVIEW, name: ["x"]}):
        with pytest.raises(Unreadable, match=name):
            records.overview(broken)


def test_true_is_no_number():
    with pytest.raises(Unreadable, match="member_count = True"):
        records.overview({**OVERVIEW, "member_count": True})


def test_an_agent_without_an_override_has_the_tenants_default():
    row = {"agent_type": "law_in_data", "is_enabled": None, "tenant_default": True}
    assert records.agent(row) == Agent("law_in_data", True, True)


def test_what_failed_in_bulk_is_never_taken_for_done():
    data = {"succeeded": [1], "failed": [{"member_group_id": 2, "code": "not_enterprise"}]}
    assert records.bulk(data) == Bulk((1,), (ItemFailure(2, "not_enterprise"),))
    for other in (None, {}, [], {"succeeded": [1]}, {"succeeded": [], "failed": [{"id": 2}]}):
        with pytest.raises(Unreadable):
            records.bulk(other)
