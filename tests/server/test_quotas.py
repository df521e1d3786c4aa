"""A team that names its member group has that group's quota as a ceiling beside its own budgets."""

from dataclasses import replace

import orjson

from proxy.core.policy import Policy, Team
from proxy.core.prices import FLAT, PriceTable, Rule
from proxy.core.quotas import Quota
from proxy.emulator.groups.accounts import access_token
from proxy.emulator.groups.service import running_groups
from proxy.server import quotas
from proxy.stores.quotafile import keep_quotas, kept_quotas
from proxy.units import CREDIT, credits_of
from tests.proxies import proxied
from tests.restarts import restarted

IMAGE = {"model": "image-lab-small", "prompt": "x"}
PRICES = PriceTable((Rule("models", "*", replace(FLAT, per_image=credits_of(10))),))
ENGINEERING = 2


def policy(group=ENGINEERING):
    return Policy({"red": Team("red", group=group, wait_max_s=0.0)}, open_team="red", prices=PRICES)


def tenant(service, tmp_path):
    token = tmp_path / "token"
    token.write_text(access_token("master"))
    token.chmod(0o600)
    return {"tenant_url": service.url, "tenant_token_file": str(token), "data": str(tmp_path)}


async def quota(service, client, amount):
    headers = {"x-access-token": access_token("master")}
    async with client.patch(
        f"{service.url}/v1/admin/member-groups/{ENGINEERING}/", json={"credit_quota": amount}, headers=headers
    ) as answer:
        assert answer.status == 200, await answer.text()


async def image(front):
    return await front.post("/v1/images/generate", IMAGE)


async def test_a_quota_is_a_ceiling_and_follows_the_service(gateway, tmp_path):
    async with running_groups() as service, proxied(gateway.url, policy(), **tenant(service, tmp_path)) as front:
        parts = front.running.parts
        await quota(service, front.client, 25)
        await quotas.look(parts)
        assert [(await image(front)).status for _ in range(3)] == [200, 200, 402]
        said = (await image(front)).error
        assert "group:red" in said["message"]
        await quota(service, front.client, 30)
        await quotas.look(parts)
        assert [(await image(front)).status for _ in range(2)] == [200, 402]
        await quota(service, front.client, None)
        await quotas.look(parts)
        assert (await image(front)).status == 200, "a group without a quota is no ceiling"


async def test_the_counts_of_service_and_ledger_stand_side_by_side(gateway, tmp_path):
    async with (
        running_groups() as service,
        proxied(gateway.url, policy("Engineering"), **tenant(service, tmp_path)) as front,
    ):
        await quota(service, front.client, 1000)
        await quotas.look(front.running.parts)
        assert (await image(front)).status == 200
        await front.running.parts.books.written()
        async with front.client.get(front.running.admin_url + "/api/budgets/group:red") as answer:
            said = await answer.json()
        assert said["source"] == "member group 2 (Engineering)"
        (account,) = said["accounts"]
        assert (account["credits"], account["spent"]) == ("1000", "10")
        used, elsewhere = (float(said["service"][name]) for name in ("used", "elsewhere"))
        assert used - elsewhere == 10
        async with front.client.get(front.running.admin_url + "/metrics") as answer:
            shown = await answer.text()
        assert 'sluicegate_member_group_quota_credits{team="red"} 1000.0' in shown
        assert f'sluicegate_member_group_used_credits{{team="red"}} {used}' in shown


async def test_a_service_that_does_not_answer_leaves_what_it_said_last(gateway, tmp_path):
    async with running_groups() as service, proxied(gateway.url, policy(), **tenant(service, tmp_path)) as front:
        await quota(service, front.client, 15)
        await quotas.look(front.running.parts)
        await service.stop()
        assert [(await image(front)).status for _ in range(2)] == [200, 402]
        (kept,) = kept_quotas(tmp_path).values()
        assert (kept.id, kept.credits) == (ENGINEERING, 15 * CREDIT)


async def test_a_restart_begins_with_the_quota_that_was_read_last(gateway, tmp_path):
    keep_quotas(tmp_path, {"red": Quota(ENGINEERING, "Engineering", credits_of(5), credits_of(0), 1.0)})
    async with restarted(gateway.url, policy(), tmp_path) as front:
        assert (await image(front)).status == 402


async def test_a_group_nobody_knows_is_said(gateway, tmp_path):
    async with (
        running_groups() as service,
        proxied(gateway.url, policy("Nobody"), **tenant(service, tmp_path)) as front,
    ):
        await front.until(lambda: any(event["event"] == "group_unknown" for event in front.events))
        assert (await image(front)).status == 200


async def test_a_reload_that_no_longer_names_the_group_lifts_its_quota(gateway, tmp_path):
    async with running_groups() as service, proxied(gateway.url, policy(), **tenant(service, tmp_path)) as front:
        await quota(service, front.client, 5)
        await quotas.look(front.running.parts)
        assert (await image(front)).status == 402
        assert quotas.budgets_in_force(policy(None), front.running.parts.state.quotas) == ()


def test_what_is_kept_comes_back(tmp_path):
    said = {"red": Quota(2, "왜가리", credits_of("12.5"), credits_of(3), 4.0)}
    keep_quotas(tmp_path, said)
    assert kept_quotas(tmp_path) == said
    assert (tmp_path / "quotas.json").stat().st_mode & 0o077 == 0
    (tmp_path / "quotas.json").write_bytes(orjson.dumps({"red": {"id": 1}}))
    assert kept_quotas(tmp_path) == {}
