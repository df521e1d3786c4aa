import orjson
import pytest

from proxy.emulator.catalog import MODELS

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "far": {"type": "boolean"}},
            "required": ["place"],
        },
    },
}


def structured(schema, **changes):
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema, **changes}}


CLOSED = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 5}, "word": {"enum": ["a", "b"]}},
    "required": ["n", "word"],
    "additionalProperties": False,
}


def message(reply):
    return reply.json["choices"][0]["message"]


@pytest.mark.fact("chat-answer")
async def test_the_answer_is_a_chat_completion_object(api):
    value = (await api.chat()).json
    assert value.keys() == {"id", "object", "created", "model", "choices", "usage"}
    assert (value["object"], value["model"]) == ("chat.completion", "gpt-4o")
    assert value["choices"][0].keys() == {"index", "message", "logprobs", "finish_reason"}
    usage = value["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


@pytest.mark.fact("chat-required")
async def test_model_and_messages_are_required(api):
    reply = await api.post("chat/completions/", {})
    assert reply.status == 422
    assert [(item["type"], item["loc"], item["msg"]) for item in reply.detail] == [
        ("missing", ["body", "model"], "Field required"),
        ("missing", ["body", "messages"], "Field required"),
    ]


@pytest.mark.fact("error-422")
async def test_a_validation_error_lists_every_problem_with_its_place(api):
    reply = await api.post(
        "chat/completions/", {"model": 1, "messages": [{"role": "judge", "content": 2}], "stream": 1}
    )
    assert reply.status == 422
    assert [item["loc"] for item in reply.detail] == [
        ["body", "model"],
        ["body", "messages", 0, "role"],
        ["body", "messages", 0, "content"],
        ["body", "stream"],
    ]
    assert all({"loc", "msg", "type"} <= item.keys() <= {"loc", "msg", "type", "input", "ctx"} for item in reply.detail)


@pytest.mark.fact("error-422-json")
async def test_a_body_that_is_no_json_object_is_a_validation_error(api):
    for data in (b"", b"{", b"[]", b'"x"'):
        assert (await api.call("POST", "chat/completions/", data=data)).status == 422, data


@pytest.mark.fact("chat-roles")
async def test_the_documented_roles_are_taken(api):
    messages = [
        {"role": "system", "content": "a"},
        {"role": "developer", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "text", "text": "c"}]},
        {"role": "assistant", "content": "d"},
        {"role": "user", "content": "e"},
    ]
    assert (await api.chat(messages=messages)).status == 200
    assert (await api.chat(messages=[{"role": "system"}])).status == 400


@pytest.mark.fact("chat-stream")
async def test_a_stream_is_made_of_chunks_and_ends_with_done(api):
    reply = await api.chat(stream=True)
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    assert reply.body.endswith(b"data: [DONE]\n\n")
    assert {chunk["object"] for chunk in reply.events} == {"chat.completion.chunk"}
    assert reply.events[-1]["choices"][0]["finish_reason"] == "stop"
    assert not any("usage" in chunk for chunk in reply.events)


@pytest.mark.fact("chat-stream-default")
async def test_without_stream_the_answer_is_one_object(api):
    assert (await api.chat(stream=False)).headers["Content-Type"] == "application/json"
    assert (await api.chat()).headers["Content-Type"] == "application/json"


@pytest.mark.fact("chat-include-usage")
async def test_the_last_chunk_carries_the_usage_when_it_is_asked_for(api):
    chunks = (await api.chat(stream=True, stream_options={"include_usage": True})).events
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == (await api.chat()).json["usage"]
    assert all(chunk["usage"] is None for chunk in chunks[:-1])


@pytest.mark.fact("chat-temperature")
async def test_temperature_goes_from_0_to_2(api):
    for value, status in ((0, 200), (1.0, 200), (2, 200), (-0.1, 400), (2.1, 400)):
        assert (await api.chat(temperature=value)).status == status, value


@pytest.mark.fact("chat-temperature-one")
async def test_some_models_accept_only_temperature_1(api):
    assert (await api.chat(model="gpt-x", temperature=1)).status == 200
    assert (await api.chat(model="gpt-x")).status == 200
    assert (await api.chat(model="gpt-x", temperature=0)).status == 400


@pytest.mark.fact("chat-top-k")
async def test_top_k_is_for_native_models_only(api):
    assert (await api.chat(model="claude-sonnet-x", top_k=5)).status == 200
    assert (await api.chat(model="gpt-4o", top_k=5)).status == 400


@pytest.mark.fact("chat-max-tokens")
async def test_both_names_of_the_output_bound_cut_the_answer(api):
    for name in ("max_tokens", "max_completion_tokens"):
        value = (await api.chat(**{name: 5})).json
        assert value["choices"][0]["finish_reason"] == "length", name
        assert value["usage"]["completion_tokens"] == 5, name


@pytest.mark.fact("chat-stop")
async def test_the_answer_ends_before_a_stop_sequence(api):
    whole = message(await api.chat())["content"]
    word = whole.split()[4]
    for stop in (word, ["never said", word]):
        assert message(await api.chat(stop=stop))["content"] != whole
        assert word not in message(await api.chat(stop=stop))["content"]


@pytest.mark.fact("limit-stop")
async def test_at_most_4_stop_sequences_are_taken(api):
    assert (await api.chat(stop=["a1", "b1", "c1", "d1"])).status == 200
    assert (await api.chat(stop=["a1", "b1", "c1", "d1", "e1"])).status == 400


@pytest.mark.fact("chat-tools")
async def test_a_tool_the_user_names_is_called_with_arguments_that_fit(api):
    value = (await api.chat("please look outside", tools=[TOOL])).json["choices"][0]
    assert value["finish_reason"] == "tool_calls"
    call = value["message"]["tool_calls"][0]
    assert (call["type"], call["function"]["name"]) == ("function", "look")
    arguments = orjson.loads(call["function"]["arguments"])
    assert isinstance(arguments["place"], str)
    assert isinstance(arguments["far"], bool)


@pytest.mark.fact("chat-tool-choice")
async def test_tool_choice_forces_and_forbids_a_call(api):
    named = {"type": "function", "function": {"name": "look"}}
    for choice, finish in (("auto", "stop"), ("none", "stop"), ("required", "tool_calls"), (named, "tool_calls")):
        value = (await api.chat("hello", tools=[TOOL], tool_choice=choice)).json
        assert value["choices"][0]["finish_reason"] == finish, choice
    assert message(await api.chat("look", tools=[TOOL], tool_choice="none"))["content"]
    assert (await api.chat(tools=[TOOL], tool_choice="maybe")).status == 400
    named["function"]["name"] = "unknown"
    assert (await api.chat(tools=[TOOL], tool_choice=named)).status == 400


@pytest.mark.fact("chat-tools-function")
async def test_tools_are_function_definitions(api):
    assert (await api.chat(tools=[{"type": "web_search", "function": {"name": "x"}}])).status == 400
    assert (await api.chat(tools=[{"type": "function"}])).status == 422


@pytest.mark.fact("chat-tools-stream")
async def test_a_streamed_call_carries_the_same_arguments_in_pieces(api):
    whole = message(await api.chat("look", tools=[TOOL]))["tool_calls"][0]["function"]["arguments"]
    chunks = (await api.chat("look", tools=[TOOL], stream=True)).events
    calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert "".join(call["function"]["arguments"] for call in calls) == whole
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.fact("chat-json-schema")
async def test_structured_output_fits_its_schema(api):
    value = orjson.loads(message(await api.chat(response_format=structured(CLOSED)))["content"])
    assert value.keys() == {"n", "word"}
    assert 3 <= value["n"] <= 5
    assert value["word"] in ("a", "b")


@pytest.mark.fact("chat-json-schema-strict")
async def test_structured_output_needs_strict_and_closed_objects(api):
    open_inside = {**CLOSED, "properties": {"inner": {"type": "object", "properties": {}}}}
    for refused in (
        structured(CLOSED, strict=False),
        structured(CLOSED, name=None),
        structured({**CLOSED, "additionalProperties": True}),
        structured({"type": "object", "properties": {}}),
        structured(open_inside),
        {"type": "json_schema"},
        {"type": "yaml"},
    ):
        assert (await api.chat(response_format=refused)).status == 400, refused
    assert (await api.chat(response_format=structured("not a schema"))).status == 422


@pytest.mark.fact("chat-reasoning-empty")
async def test_a_reasoning_model_with_a_budget_below_4096_answers_200_with_nothing(api):
    value = (await api.chat(model="gpt-x", max_tokens=4095)).json
    assert (value["choices"][0]["message"]["content"], value["choices"][0]["finish_reason"]) == ("", "length")
    assert value["usage"]["completion_tokens"] == 4095
    assert message(await api.chat(model="gpt-x", max_tokens=4096))["content"]


@pytest.mark.fact("chat-reasoning-counts")
async def test_reasoning_tokens_count_as_output(api):
    usage = (await api.chat(model="gpt-x", max_tokens=16000)).json["usage"]
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    assert 0 < reasoning < usage["completion_tokens"]


@pytest.mark.fact("chat-effort")
async def test_reasoning_effort_is_low_medium_or_high(api):
    spent = []
    for effort in ("low", "medium", "high"):
        usage = (await api.chat(model="gpt-x", reasoning_effort=effort)).json["usage"]
        spent.append(usage["completion_tokens_details"]["reasoning_tokens"])
    assert spent == sorted(set(spent))
    assert (await api.chat(model="gpt-x", reasoning_effort="extreme")).status == 400


@pytest.mark.fact("chat-effort-tools")
async def test_an_effort_the_model_rejects_with_tools_is_dropped(api):
    async def spent(model, **more):
        usage = (await api.chat(model=model, reasoning_effort="high", **more)).json["usage"]
        return usage["completion_tokens_details"]["reasoning_tokens"]

    assert await spent("gpt-x", tools=[TOOL]) == await spent("gpt-x")
    assert await spent("gpt-x-mini", tools=[TOOL]) < await spent("gpt-x-mini")


@pytest.mark.fact("chat-thinking-budget")
async def test_thinking_budget_goes_from_0_to_8192_or_is_minus_1(api):
    for value, status in ((0, 200), (8192, 200), (-1, 200), (8193, 400), (-2, 400)):
        assert (await api.chat(model="gem-2-flash", thinking_budget=value)).status == status, value


@pytest.mark.fact("chat-thinking-budget-series")
async def test_thinking_budget_is_for_one_series_only(api):
    assert (await api.chat(model="gem-3-pro", thinking_budget=100)).status == 400
    assert (await api.chat(model="gpt-4o", thinking_budget=100)).status == 400


@pytest.mark.fact("chat-thinking-level")
async def test_each_tier_takes_its_own_thinking_levels(api):
    accepted = {
        "gem-3-flash": {"minimal", "low", "medium", "high"},
        "gem-3-pro": {"low", "high"},
        "gem-2-flash": set(),
        "gpt-4o": set(),
    }
    for model, levels in accepted.items():
        for level in ("minimal", "low", "medium", "high", "max"):
            status = 200 if level in levels else 400
            assert (await api.chat(model=model, thinking_level=level)).status == status, (model, level)


@pytest.mark.fact("chat-thinking-both")
async def test_thinking_budget_and_level_exclude_each_other(api):
    reply = await api.chat(model="gem-2-flash", thinking_budget=10, thinking_level="low")
    assert reply.status == 400
    assert "mutually exclusive" in reply.detail


@pytest.mark.fact("model-404")
async def test_an_unknown_or_disabled_model_is_404(api):
    for name in ("nothing", "gpt-retired"):
        assert (await api.chat(model=name)).refusal == (404, f"Model '{name}' not found")


@pytest.mark.fact("model-403")
async def test_a_free_or_app_only_model_is_403(api):
    reply = await api.chat(model="gpt-free")
    assert reply.refusal == (403, "Model 'gpt-free' is not available through the Gateway API.")


@pytest.mark.fact("chat-image-model")
async def test_an_image_model_is_not_found_on_chat(api):
    name = "image-lab-large"
    assert (await api.chat(model=name)).refusal == (404, f"Model '{name}' not found")


@pytest.mark.fact("chat-responses-only")
async def test_a_model_of_the_responses_endpoint_only_is_400_on_chat(api):
    assert (await api.chat(model="gpt-x-codex")).refusal == (400, "Model 'gpt-x-codex' not found")


@pytest.mark.fact("chat-charge")
async def test_a_call_costs_its_tokens_at_the_price_of_the_model(api):
    usage = (await api.chat()).json["usage"]
    model = MODELS["gpt-4o"]
    due = usage["prompt_tokens"] * model.input_price + usage["completion_tokens"] * model.output_price
    assert api.gateway.journal[-1].charged == due > 0
    assert api.gateway.credits("alpha") == 1000 * 10**8 - due


async def test_several_choices_are_numbered_and_counted(api):
    value = (await api.chat(n=2)).json
    assert [choice["index"] for choice in value["choices"]] == [0, 1]
    assert value["choices"][0]["message"] != value["choices"][1]["message"]
    assert value["usage"]["completion_tokens"] > (await api.chat()).json["usage"]["completion_tokens"]


async def test_a_user_can_ask_for_a_number_of_words(api):
    assert (await api.chat("[[words:500]]")).json["usage"]["completion_tokens"] == 500
