import pytest

from proxy.emulator.catalog import MODELS

TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}}}
LONG = "a question that is long enough to be worth some thought, whatever it may be about, really"


def kinds(reply):
    return [block["type"] for block in reply.json["content"]]


@pytest.mark.fact("native-answer")
async def test_the_answer_is_a_message_of_the_vendor(api):
    value = (await api.native()).json
    assert (value["type"], value["role"], value["stop_reason"]) == ("message", "assistant", "end_turn")
    assert value["content"][0].keys() == {"type", "text"}
    assert value["usage"].keys() == {
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    }


@pytest.mark.fact("native-keys")
async def test_the_key_may_come_in_either_header(api):
    assert (await api.native()).status == 200
    assert (await api.native(key=None, headers={"x-api-key": api.alpha})).status == 200


@pytest.mark.fact("native-version")
async def test_the_version_header_is_required_with_its_one_value(api):
    body = {"model": "claude-sonnet-x", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    reply = await api.post("partner/v1/messages/", body)
    assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")
    assert (await api.native(headers={"partner-version": "2026-10-21"})).status == 400


@pytest.mark.fact("native-segment")
async def test_the_segment_names_the_path_and_the_headers(emulated):
    async with emulated(segment="vendor") as api:
        body = {"model": "claude-sonnet-x", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        headers = {"vendor-version": "2023-06-01"}
        assert (await api.post("vendor/v1/messages/", body, headers=headers)).status == 200
        assert (await api.post("partner/v1/messages/", body, headers=headers)).status == 404


@pytest.mark.fact("native-beta")
async def test_beta_features_are_taken(api):
    for beta in ("prompt-caching-2024-07-31", "interleaved-thinking-2025-05-14", "token-counting-2024-11-01"):
        assert (await api.native(headers={"partner-beta": beta})).status == 200, beta


@pytest.mark.fact("native-other-model")
async def test_a_model_of_another_vendor_is_400(api):
    assert (await api.native(model="gpt-4o")).refusal == (400, "Model 'gpt-4o' is not an Anthropic model")


@pytest.mark.fact("native-404")
async def test_an_unknown_or_disabled_native_model_is_404(api):
    for name in ("nothing", "claude-retired"):
        assert (await api.native(model=name)).refusal == (404, f"Model '{name}' not found")


@pytest.mark.fact("native-required")
async def test_model_messages_and_max_tokens_are_required(api):
    whole = {"model": "claude-sonnet-x", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    for name in whole:
        body = {field: value for field, value in whole.items() if field != name}
        reply = await api.post("partner/v1/messages/", body, headers={"partner-version": "2023-06-01"})
        assert reply.status == 400, name
        assert reply.json["error"]["message"] == f"{name}: Field required"


@pytest.mark.fact("native-roles")
async def test_only_user_and_assistant_speak(api):
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]
    assert (await api.native(messages=[*said, said[0]])).status == 200
    assert (await api.native(messages=[{"role": "system", "content": "a"}])).status == 400


@pytest.mark.fact("native-temperature")
async def test_temperature_goes_from_0_to_1(api):
    for value, status in ((0, 200), (1, 200), (1.1, 400), (-0.1, 400)):
        assert (await api.native(temperature=value)).status == status, value


@pytest.mark.fact("native-system")
async def test_system_is_text_or_blocks(api):
    assert (await api.native(system="be brief")).status == 200
    assert (await api.native(system=[{"type": "text", "text": "be brief"}])).status == 200
    assert (await api.native(system=5)).status == 400


@pytest.mark.fact("native-max-tokens")
async def test_the_answer_is_cut_at_max_tokens(api):
    value = (await api.native(max_tokens=3)).json
    assert (value["stop_reason"], value["usage"]["output_tokens"]) == ("max_tokens", 3)


@pytest.mark.fact("native-stream")
async def test_a_stream_has_every_event_of_the_vendor_in_order(api):
    reply = await api.native(stream=True)
    names = [line.removeprefix(b"event: ").decode() for line in reply.body.split(b"\n") if line.startswith(b"event: ")]
    assert names == [event["type"] for event in reply.events]
    deltas = names.count("content_block_delta")
    assert names == [
        "message_start",
        "content_block_start",
        "ping",
        *["content_block_delta"] * deltas,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    whole = (await api.native()).json
    deltas = [event["delta"]["text"] for event in reply.events if event["type"] == "content_block_delta"]
    assert "".join(deltas) == whole["content"][0]["text"]
    assert reply.events[-2]["usage"]["output_tokens"] == whole["usage"]["output_tokens"]


@pytest.mark.fact("native-tools")
async def test_a_tool_is_used_with_an_input_that_fits(api):
    value = (await api.native("look", tools=[TOOL])).json
    assert value["stop_reason"] == "tool_use"
    assert value["content"][0]["name"] == "look"
    assert isinstance(value["content"][0]["input"]["place"], str)
    for choice in ({"type": "any"}, {"type": "tool", "name": "look"}):
        assert (await api.native("hi", tools=[TOOL], tool_choice=choice)).json["stop_reason"] == "tool_use"


@pytest.mark.fact("native-thinking-adaptive")
async def test_adaptive_thinking_thinks_before_it_speaks_and_needs_no_beta(api):
    assert kinds(await api.native(thinking={"type": "adaptive"})) == ["thinking", "text"]
    assert kinds(await api.native()) == ["text"]
    reply = await api.native(thinking={"type": "adaptive"}, stream=True)
    deltas = {event["delta"]["type"] for event in reply.events if event["type"] == "content_block_delta"}
    assert deltas == {"thinking_delta", "signature_delta", "text_delta"}


@pytest.mark.fact("native-thinking-manual")
async def test_manual_thinking_takes_a_budget_below_max_tokens(api):
    assert kinds(await api.native(thinking={"type": "enabled", "budget_tokens": 2000})) == ["thinking", "text"]
    for budget in (None, 100, 8000):
        thinking = {"type": "enabled", **({"budget_tokens": budget} if budget else {})}
        assert (await api.native(thinking=thinking)).status == 400, budget


@pytest.mark.fact("native-effort")
async def test_effort_decides_how_much_is_thought(api):
    async def thought(effort, text, model="claude-opus-x"):
        fields = {"thinking": {"type": "adaptive"}, **({"output_config": {"effort": effort}} if effort else {})}
        reply = await api.native(text, model=model, **fields)
        return "thinking" in kinds(reply), reply.json["usage"]["output_tokens"]

    assert (await thought("low", LONG))[0] is False
    assert (await thought("medium", "hi"))[0] is False
    assert (await thought("medium", LONG))[0] is True
    assert (await thought("high", "hi"))[0] is True
    assert (await thought(None, "hi"))[1] > 2000
    assert (await thought("max", LONG))[1] > (await thought("high", LONG))[1] > (await thought("medium", LONG))[1]


@pytest.mark.fact("native-effort-max")
async def test_effort_max_is_for_one_model_only(api):
    fields = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}
    assert (await api.native(model="claude-opus-x", **fields)).status == 200
    assert (await api.native(model="claude-sonnet-x", **fields)).status == 400
    assert (await api.native(output_config={"effort": "extreme"})).status == 400


@pytest.mark.fact("native-caching")
async def test_a_marked_prefix_is_written_once_and_read_after(api):
    system = [{"type": "text", "text": "long " * 50, "cache_control": {"type": "ephemeral"}}]

    async def usage(**more):
        found = (await api.native(system=system, **more)).json["usage"]
        return found["input_tokens"], found["cache_creation_input_tokens"], found["cache_read_input_tokens"]

    plain, written, read = await usage()
    assert (written > 50, read) == (True, 0)
    assert await usage() == (plain, 0, written)
    assert await usage(key=api.beta) == (plain, written, 0)
    api.clock.forward(301)
    assert await usage() == (plain, written, 0)


@pytest.mark.fact("native-vision")
async def test_images_and_documents_are_taken(api):
    for kind in ("image", "document"):
        part = {"type": kind, "source": {"type": "base64", "media_type": "x/y", "data": "AAAA" * 5000}}
        reply = await api.native(messages=[{"role": "user", "content": [part, {"type": "text", "text": "what?"}]}])
        assert reply.status == 200
        assert reply.json["usage"]["input_tokens"] < 500


@pytest.mark.fact("native-count")
async def test_counting_tokens_costs_nothing(api):
    body = {"model": "claude-sonnet-x", "messages": [{"role": "user", "content": "hello"}]}
    reply = await api.post("partner/v1/messages/count_tokens/", body, headers={"partner-version": "2023-06-01"})
    assert reply.json == {"input_tokens": (await api.native()).json["usage"]["input_tokens"]}
    assert api.gateway.journal[0].charged == 0


@pytest.mark.fact("native-count-broke")
async def test_counting_tokens_needs_no_credits(api):
    api.gateway.set_credits("alpha", 0)
    body = {"model": "claude-sonnet-x", "messages": [{"role": "user", "content": "hello"}]}
    reply = await api.post("partner/v1/messages/count_tokens/", body, headers={"partner-version": "2023-06-01"})
    assert reply.status == 200
    assert (await api.native()).status == 402


async def test_a_native_call_costs_its_tokens_with_cache_writes_dearer_and_reads_cheaper(api):
    system = [{"type": "text", "text": "long " * 400, "cache_control": {"type": "ephemeral"}}]
    model, charges = MODELS["claude-sonnet-x"], []
    for share in (125, 10):
        usage = (await api.native(system=system)).json["usage"]
        cached = usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]
        due = (usage["input_tokens"] * 100 + cached * share) * model.input_price
        charges.append(-(-due // 100) + usage["output_tokens"] * model.output_price)
    assert [seen.charged for seen in api.gateway.journal] == charges
