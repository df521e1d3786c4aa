import pytest


@pytest.mark.fact("auth-no-key")
async def test_a_request_without_a_key_is_told_that_none_was_supplied(api):
    assert (await api.get("models/", key=None)).refusal == (401, "Authorization header is not supplied")


@pytest.mark.fact("auth-malformed")
async def test_an_authorization_header_of_another_form_is_told_to_be_bearer(api):
    for value in ("Basic abc", "sk-emu-alpha-1", "Bearer", "Bearer "):
        reply = await api.get("models/", key=None, headers={"Authorization": value})
        assert reply.refusal == (401, "Bearer token is not supplied"), value


@pytest.mark.fact("auth-unknown")
async def test_a_key_that_does_not_exist_is_invalid(api):
    assert (await api.get("models/", key="sk-emu-nobody")).refusal == (401, "Invalid API key")


@pytest.mark.fact("auth-revoked")
async def test_a_revoked_key_is_invalid(api):
    assert (await api.get("models/", key="sk-emu-revoked")).refusal == (401, "Invalid API key")


@pytest.mark.fact("auth-bearer")
async def test_a_bearer_key_is_accepted(api):
    assert (await api.get("models/")).status == 200


@pytest.mark.fact("auth-x-api-key")
async def test_a_key_in_x_api_key_is_accepted(api):
    assert (await api.get("models/", key=None, headers={"x-api-key": api.alpha})).status == 200
    assert (await api.native(key=None, headers={"x-api-key": api.alpha})).status == 200


@pytest.mark.fact("auth-suites-bearer")
async def test_tool_suites_read_the_bearer_header_only(api):
    reply = await api.get("mcp/", key=None, headers={"x-api-key": api.alpha})
    assert reply.refusal == (401, "Authorization header is not supplied")
    assert (await api.get("mcp/")).status == 200


async def test_authorization_is_judged_when_both_headers_are_sent(api):
    reply = await api.get("models/", key="sk-emu-nobody", headers={"x-api-key": api.alpha})
    assert reply.refusal == (401, "Invalid API key")


async def test_two_keys_share_a_member_and_its_balance(api):
    await api.chat(key=api.alpha_again)
    balances = [(await api.get("credits/", key=key)).json["credits"] for key in (api.alpha, api.alpha_again, api.beta)]
    assert balances[0] == balances[1] < balances[2] == 1000
