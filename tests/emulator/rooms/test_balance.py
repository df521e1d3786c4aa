from decimal import Decimal

import pytest


@pytest.mark.fact("credits-balance")
async def test_the_balance_is_that_of_the_member_and_falls_by_what_was_charged(api):
    assert (await api.get("credits/")).body == b'{"credits":1000}'
    await api.chat()
    charged = Decimal(api.gateway.journal[-1].charged) / 10**8
    assert (await api.get("credits/")).body == b'{"credits":%s}' % str(1000 - charged).encode()
    assert (await api.get("credits/", key=api.beta)).body == b'{"credits":1000}'


@pytest.mark.fact("credits-402")
async def test_a_member_without_credits_is_refused(api):
    api.gateway.set_credits("alpha", 0)
    for refused in (await api.chat(), await api.native(), await api.respond()):
        assert refused.refusal == (402, "Credit balance exhausted")
    assert (await api.chat(key=api.beta)).status == 200
    assert (await api.get("models/")).status == 200


async def test_the_last_call_may_take_the_balance_below_nothing(api):
    api.gateway.set_credits("alpha", 1)
    assert (await api.chat()).status == 200
    assert api.gateway.credits("alpha") < 0
    assert (await api.chat()).status == 402
