import asyncio

import pytest

from proxy.emulator.limits import ALL, Counts


async def statuses(count, send):
    """How many of `count` requests passed and what the last one got; requests go in batches of 20."""
    replies = []
    for start in range(0, count, 20):
        replies += await asyncio.gather(*(send() for _ in range(min(20, count - start))))
    return [reply.status for reply in replies].count(200), replies[-1]


async def spend(api, count, limit, group):
    """Use up `count` of one limit without the requests."""
    for _ in range(count):
        assert api.gateway.world.counters.take([(limit, group)]) is None


def limit_of(name):
    return next(limit for limit in ALL if limit.name == name)


@pytest.mark.fact("limit-member")
async def test_a_member_has_120_requests_in_60_seconds(api):
    passed, last = await statuses(121, lambda: api.get("credits/"))
    assert (passed, last.refusal) == (120, (429, "Rate limit exceeded"))
    assert "Retry-After" not in last.headers
    api.clock.forward(59.9)
    assert (await api.get("credits/")).status == 429
    api.clock.forward(0.1)
    assert (await api.get("credits/")).status == 200


@pytest.mark.fact("limit-per-member")
async def test_limits_count_per_member_not_per_key(api):
    await spend(api, 119, limit_of("member"), "alpha")
    assert (await api.get("credits/", key=api.alpha)).status == 200
    assert (await api.get("credits/", key=api.alpha_again)).status == 429
    assert (await api.get("credits/", key=api.beta)).status == 200


@pytest.mark.fact("limit-reservations")
async def test_a_member_has_300_credit_using_calls_in_a_minute(emulated):
    async with emulated(amount_scale=0.1) as api:
        await spend(api, 29, limit_of("reservations"), "alpha")
        assert (await api.chat()).status == 200
        for refused in (await api.chat(), await api.native(), await api.respond()):
            assert refused.refusal == (429, "Rate limit exceeded")
        assert (await api.get("credits/")).status == 200
        api.clock.forward(59)
        assert (await api.chat()).status == 429
        api.clock.forward(1)
        assert (await api.chat()).status == 200
    assert (limit_of("reservations").amount, limit_of("reservations").window_s) == (300, 60)


@pytest.mark.fact("limit-tool-key-minute")
async def test_a_key_has_30_tool_calls_a_minute(api):
    passed, last = await statuses(31, api.add)
    assert (passed, last.status) == (30, 429)
    assert last.detail == "Rate limit exceeded: 30 tools/call per minute for this API key"
    assert (await api.add(key=api.alpha_again)).status == 200
    api.clock.forward(59)
    assert (await api.add()).status == 429
    api.clock.forward(1)
    assert (await api.add()).status == 200


@pytest.mark.fact("limit-tool-key-day")
async def test_a_key_has_200_tool_calls_a_day(api):
    await spend(api, 199, limit_of("key-day"), api.alpha)
    assert [(await api.add()).status for _ in range(2)] == [200, 429]
    api.clock.forward(86_399)
    assert (await api.add()).status == 429
    api.clock.forward(1)
    assert (await api.add()).status == 200


@pytest.mark.fact("limit-tool-organization")
async def test_the_organization_has_1000_tool_calls_a_day(api):
    await spend(api, 999, limit_of("org-day"), "org-emu")
    assert [(await api.add(key=key)).status for key in (api.alpha, api.beta)] == [200, 429]
    api.clock.forward(86_399)
    assert (await api.add(key=api.beta)).status == 429
    api.clock.forward(1)
    assert (await api.add(key=api.beta)).status == 200


@pytest.mark.fact("limit-tool-suite-minute")
async def test_a_suite_has_60_tool_calls_a_minute(api):
    await spend(api, 59, limit_of("suite-minute"), "calc")
    assert [(await api.add(key=key)).status for key in (api.alpha, api.beta)] == [200, 429]
    assert (await api.rpc("text", "tools/call", {"name": "upper", "arguments": {"text": "a"}})).status == 200
    api.clock.forward(59)
    assert (await api.add(key=api.beta)).status == 429
    api.clock.forward(1)
    assert (await api.add(key=api.beta)).status == 200


@pytest.mark.fact("limit-tool-suite-day")
async def test_a_suite_has_300_tool_calls_a_day(api):
    await spend(api, 299, limit_of("suite-day"), "calc")
    assert [(await api.add(key=key)).status for key in (api.alpha, api.beta)] == [200, 429]
    api.clock.forward(86_399)
    assert (await api.add(key=api.beta)).status == 429
    api.clock.forward(1)
    assert (await api.add(key=api.beta)).status == 200


@pytest.mark.fact("limit-tool-retry-after")
async def test_a_refused_tool_call_says_when_to_come_back(api):
    await spend(api, 30, limit_of("key-minute"), api.alpha)
    api.clock.forward(12.5)
    reply = await api.add()
    assert (reply.status, reply.headers["Retry-After"]) == (429, "48")
    assert reply.detail.startswith("Rate limit exceeded: ")
    api.clock.forward(48)
    assert (await api.add()).status == 200


@pytest.mark.fact("limit-tool-besides")
async def test_tool_calls_count_under_the_general_limit_too(api):
    await spend(api, 120, limit_of("member"), "alpha")
    assert (await api.add()).refusal == (429, "Rate limit exceeded")


@pytest.mark.fact("limit-tool-only")
async def test_other_methods_of_a_suite_do_not_count_under_the_tool_limits(api):
    await spend(api, 30, limit_of("key-minute"), api.alpha)
    for method in ("initialize", "tools/list", "ping"):
        assert (await api.rpc("calc", method, {})).status == 200, method


async def test_limits_are_taken_together_or_not_at_all(api):
    await spend(api, 60, limit_of("suite-minute"), "calc")
    await api.add()
    assert "key-minute:sk-emu-alpha-1" not in api.gateway.world.counters.used()


async def test_a_request_that_a_limit_refuses_does_not_prolong_the_wait(api):
    await spend(api, 120, limit_of("member"), "alpha")
    api.clock.forward(30)
    assert (await api.get("credits/")).status == 429
    api.clock.forward(30)
    assert (await api.get("credits/")).status == 200


async def test_a_fixed_window_opens_on_the_minute(emulated):
    async with emulated(window="fixed") as api:
        api.clock.forward(1019 - api.clock.now_s())
        await spend(api, 120, limit_of("member"), "alpha")
        assert (await api.get("credits/")).status == 429
        api.clock.forward(1)
        assert (await api.get("credits/")).status == 200


async def test_limits_can_be_switched_off_and_scaled(emulated):
    async with emulated(limits=False) as api:
        assert (await statuses(130, lambda: api.get("credits/")))[0] == 130
    async with emulated(amount_scale=0.05) as api:
        assert (await statuses(10, lambda: api.get("credits/")))[0] == 6


def test_every_limit_of_the_table_is_of_the_documentation():
    rows = {(limit.name, limit.amount, limit.window_s, limit.per) for limit in ALL}
    assert rows == {
        ("member", 120, 60.0, Counts.MEMBER),
        ("chatbot", 30, 60.0, Counts.MEMBER),
        ("reservations", 300, 60.0, Counts.MEMBER),
        ("key-minute", 30, 60.0, Counts.KEY),
        ("key-day", 200, 86_400.0, Counts.KEY),
        ("org-day", 1000, 86_400.0, Counts.ORGANIZATION),
        ("suite-minute", 60, 60.0, Counts.SUITE),
        ("suite-day", 300, 86_400.0, Counts.SUITE),
    }
