import orjson
import pytest

from proxy.emulator.catalog import MODELS

TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
CLOSED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def text(value):
    return next(item["content"][0]["text"] for item in value["output"] if item["type"] == "message")


@pytest.mark.fact("responses-answer")
async def test_the_answer_is_a_response_with_items(api):
    value = (await api.respond()).json
    assert (value["object"], value["status"], value["model"]) == ("response", "completed", "gpt-4o")
    assert isinstance(value["created_at"], int)
    item = value["output"][0]
    assert (item["type"], item["role"], item["content"][0]["type"]) == ("message", "assistant", "output_text")
    assert {"input_tokens", "output_tokens", "output_tokens_details"} <= value["usage"].keys()


@pytest.mark.fact("responses-required")
async def test_model_and_input_are_required_and_input_is_an_array(api):
    assert [item["loc"] for item in (await api.post("responses/", {})).detail] == [["body", "model"], ["body", "input"]]
    assert (await api.respond(input="hello")).status == 422


@pytest.mark.fact("responses-other-model")
async def test_a_model_of_another_vendor_is_400(api):
    name = "claude-sonnet-x"
    assert (await api.respond(model=name)).refusal == (400, f"Model '{name}' is not an OpenAI model")


@pytest.mark.fact("responses-codex")
async def test_code_models_are_served_here(api):
    assert (await api.respond(model="gpt-x-codex")).status == 200


@pytest.mark.fact("responses-404")
async def test_an_unknown_model_is_404(api):
    assert (await api.respond(model="nothing")).refusal == (404, "Model 'nothing' not found")


@pytest.mark.fact("responses-default-budget")
async def test_output_is_bounded_at_4096_tokens_by_default(api):
    value = (await api.respond("[[words:5000]]")).json
    assert (value["status"], value["max_output_tokens"]) == ("incomplete", 4096)
    assert value["usage"]["output_tokens"] == 4096
    value = (await api.respond("[[words:5000]]", max_output_tokens=5000)).json
    assert (value["status"], value["usage"]["output_tokens"]) == ("completed", 5000)


@pytest.mark.fact("responses-instructions")
async def test_instructions_are_applied_before_the_input(api):
    plain, told = (await api.respond()).json, (await api.respond(instructions="be brief, please")).json
    assert told["usage"]["input_tokens"] > plain["usage"]["input_tokens"]
    assert text(told) != text(plain)
    assert (await api.respond(instructions=["x"])).status == 422


@pytest.mark.fact("responses-stream")
async def test_a_stream_has_every_event_numbered_and_ends_with_the_whole(api):
    reply = await api.respond(stream=True)
    names = [event["type"] for event in reply.events]
    deltas = names.count("response.output_text.delta")
    assert names == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * deltas,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event["sequence_number"] for event in reply.events] == list(range(len(names)))
    pieces = [event["delta"] for event in reply.events if event["type"] == "response.output_text.delta"]
    assert "".join(pieces) == text(reply.events[-1]["response"]) == text((await api.respond()).json)


@pytest.mark.fact("responses-reasoning")
async def test_reasoning_takes_effort_and_summary(api):
    value = (await api.respond(model="gpt-x", reasoning={"effort": "high", "summary": "auto"})).json
    assert [item["type"] for item in value["output"]] == ["reasoning", "message"]
    assert value["output"][0]["summary"][0]["type"] == "summary_text"
    assert value["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
    assert (await api.respond(model="gpt-x", reasoning={"summary": "none"})).json["output"][0]["summary"] == []
    for wrong in ({"effort": "extreme"}, {"summary": "long"}):
        assert (await api.respond(model="gpt-x", reasoning=wrong)).status == 400, wrong


@pytest.mark.fact("responses-reasoning-tools")
async def test_reasoning_and_tools_can_be_combined(api):
    fields = {"model": "gpt-x-mini", "tools": [TOOL], "reasoning": {"effort": "high"}}
    value = (await api.respond("look", **fields)).json
    assert [item["type"] for item in value["output"]] == ["reasoning", "function_call"]
    assert isinstance(orjson.loads(value["output"][1]["arguments"])["n"], int)
    events = (await api.respond("look", stream=True, **fields)).events
    parts = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
    assert "".join(parts) == value["output"][1]["arguments"]


@pytest.mark.fact("responses-starved")
async def test_a_reasoning_model_with_a_small_budget_ends_incomplete(api):
    value = (await api.respond(model="gpt-x", max_output_tokens=1000)).json
    assert (value["status"], value["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    events = (await api.respond(model="gpt-x", max_output_tokens=1000, stream=True)).events
    assert events[-1]["type"] == "response.incomplete"


@pytest.mark.fact("responses-format")
async def test_structured_output_fits_its_schema(api):
    layout = {"type": "json_schema", "name": "answer", "strict": True, "schema": CLOSED}
    assert orjson.loads(text((await api.respond(text={"format": layout})).json)).keys() == {"n"}


@pytest.mark.fact("responses-background")
async def test_a_background_response_returns_at_once_and_is_polled_to_its_end(api):
    begun = (await api.respond(background=True)).json
    assert (begun["status"], begun["output"]) == ("queued", [])
    polls = [(await api.get(f"responses/{begun['id']}/")).json for _ in range(3)]
    assert [value["status"] for value in polls] == ["in_progress", "completed", "completed"]
    assert text(polls[-1]) == text((await api.respond()).json)
    assert [seen.charged for seen in api.gateway.journal[1:4]] == [0, 0, 0]


@pytest.mark.fact("responses-cancel")
async def test_a_background_response_can_be_cancelled(api):
    ident = (await api.respond(background=True)).json["id"]
    assert (await api.post(f"responses/{ident}/cancel/", {})).json["status"] == "cancelled"
    assert (await api.get(f"responses/{ident}/")).json["status"] == "cancelled"


@pytest.mark.fact("responses-chain")
async def test_a_chained_response_carries_the_tokens_of_its_parent(api):
    parent = (await api.respond()).json
    child = (await api.respond(previous_response_id=parent["id"])).json
    assert child["previous_response_id"] == parent["id"]
    assert child["usage"]["input_tokens"] == parent["usage"]["input_tokens"] + parent["usage"]["total_tokens"]
    assert (await api.respond(previous_response_id="resp_unknown")).status == 404


async def test_an_id_of_another_member_is_unknown(api):
    ident = (await api.respond(background=True)).json["id"]
    assert (await api.get(f"responses/{ident}/", key=api.beta)).status == 404
    assert (await api.post(f"responses/{ident}/cancel/", {}, key=api.beta)).status == 404
    assert (await api.respond(previous_response_id=ident, key=api.beta)).status == 404
    assert (await api.get(f"responses/{ident}/", key=api.alpha_again)).status == 200


async def test_a_response_that_ended_stays_as_it_is_when_it_is_cancelled(api):
    ident = (await api.respond(background=True)).json["id"]
    for _ in range(2):
        await api.get(f"responses/{ident}/")
    assert (await api.post(f"responses/{ident}/cancel/", {})).json["status"] == "completed"
    assert (await api.post(f"responses/{(await api.respond()).json['id']}/cancel/", {})).status == 400


async def test_a_response_that_is_not_stored_is_forgotten(api):
    ident = (await api.respond(store=False)).json["id"]
    assert (await api.get(f"responses/{ident}/")).status == 404


async def test_a_response_costs_its_tokens(api):
    usage, model = (await api.respond()).json["usage"], MODELS["gpt-4o"]
    due = usage["input_tokens"] * model.input_price + usage["output_tokens"] * model.output_price
    assert api.gateway.journal[-1].charged == due
