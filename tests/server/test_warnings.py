import pytest

from proxy.core.limits import Budget, Excess, Match
from proxy.core.policy import Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.windows import Calendar, Per
from proxy.server import warnings
from tests.proxies import proxied

CREDIT = 10**8
IMAGE = {"model": "image-lab-large", "prompt": "A hill."}


@pytest.mark.parametrize(
    ("warn_at", "told"), [((), ["1"]), ((0.5,), ["0.5", "1"]), ((1.0,), ["1"])], ids=["alone", "beside", "the same"]
)
async def test_a_budget_that_warns_on_excess_does_so_at_its_whole_amount_and_refuses_nothing(gateway, warn_at, told):
    gateway.set_credits("alpha", 10**6 * CREDIT)
    budget = Budget("day", 100 * CREDIT, Calendar(Per.DAY), excess=Excess.WARN, warn_at=warn_at)
    prices = PriceTable((Rule("models", "image-*", Price(per_image=60 * CREDIT)),))
    policy = Policy({"red": Team("red")}, open_team="red", budgets=(budget,), prices=prices)
    async with proxied(gateway.url, policy) as front:
        for _ in range(3):
            assert (await front.post("/v1/images/generate", IMAGE)).status == 200
        warnings.tell(front.running.parts)
        found = [event for event in front.events if event["event"] == "budget_warning"]
        assert [(event["budget"], event["share"]) for event in found] == [("day", share) for share in told]
        (standing,) = front.running.parts.books.accounts.standing(budget, front.running.parts.wall())
        assert standing.reached == tuple(float(share) for share in told)


async def test_a_share_that_is_reached_is_one_log_line_and_one_count(gateway):
    gateway.set_credits("alpha", 10**6 * CREDIT)
    budget = Budget("day", 200 * CREDIT, Calendar(Per.DAY), Match(team="red"), warn_at=(0.5,), source="a.yaml:3:5")
    prices = PriceTable((Rule("models", "image-*", Price(per_image=60 * CREDIT)),))
    policy = Policy({"red": Team("red")}, open_team="red", budgets=(budget,), prices=prices)
    async with proxied(gateway.url, policy) as front:
        for _ in range(3):
            assert (await front.post("/v1/images/generate", IMAGE)).status == 200
        await front.until(lambda: any(event["event"] == "budget_warning" for event in front.events))
        told = [event for event in front.events if event["event"] == "budget_warning"]
        assert [(event["budget"], event["share"], event["amount"], event["source"]) for event in told] == [
            ("day", "0.5", "200", "a.yaml:3:5")
        ]
        async with front.client.get(f"{front.running.admin_url}/metrics") as answer:
            assert 'sluicegate_budget_warnings_total{budget="day",share="0.5"} 1.0' in await answer.text()
