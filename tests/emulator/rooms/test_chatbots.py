import pytest

URL = "chatbots/7/chat/completions/"
SAID = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.fact("chatbot-answer")
async def test_the_answer_is_a_chat_completion_with_credits_and_files(api):
    value = (await api.post(URL, SAID)).json
    assert value.keys() == {"id", "object", "created", "model", "choices", "usage", "credits", "files"}
    assert value["object"] == "chat.completion"
    assert value["choices"][0].keys() == {"index", "message", "finish_reason"}
    assert (value["choices"][0]["message"]["role"], value["choices"][0]["finish_reason"]) == ("assistant", "stop")
    assert value["usage"].keys() == {"prompt_tokens", "completion_tokens", "total_tokens"}
    assert (value["credits"], value["files"]) == (3.25, [])


@pytest.mark.fact("chatbot-charge")
async def test_what_it_cost_is_what_the_member_pays(api):
    await api.post(URL, SAID)
    assert api.gateway.credits("alpha") == 1000 * 10**8 - 325_000_000
    api.gateway.set_credits("alpha", 0)
    assert (await api.post(URL, SAID)).status == 402


@pytest.mark.fact("chatbot-files")
async def test_a_file_comes_as_a_link_that_needs_no_key(api):
    files = (await api.post("chatbots/8/chat/completions/", SAID)).json["files"]
    assert files[0].keys() == {"file_id", "filename", "mime_type", "url", "expires_in"}
    path = files[0]["url"].removeprefix(api.gateway.url)
    reply = await api.get(path, key=None)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/plain")
    assert isinstance(files[0]["file_id"], int)
    assert isinstance(files[0]["expires_in"], int)


@pytest.mark.fact("chatbot-stream")
async def test_a_stream_ends_with_usage_credits_and_files(api):
    reply = await api.post(URL, {**SAID, "stream": True})
    assert reply.body.endswith(b"data: [DONE]\n\n")
    assert {"usage", "credits", "files"} <= reply.events[-1].keys()
    pieces = [chunk["choices"][0]["delta"].get("content", "") for chunk in reply.events[:-1]]
    assert "".join(pieces) == (await api.post(URL, SAID)).json["choices"][0]["message"]["content"]


@pytest.mark.fact("chatbot-messages")
async def test_at_least_one_message_is_needed(api):
    reply = await api.post(URL, {"messages": []})
    assert (reply.status, reply.detail[0]["loc"]) == (422, ["body", "messages"])
    assert (await api.post(URL, {})).status == 422


@pytest.mark.fact("chatbot-roles")
async def test_messages_are_text_of_three_roles(api):
    for role, status in (("system", 200), ("user", 200), ("assistant", 200), ("developer", 422), ("tool", 422)):
        assert (await api.post(URL, {"messages": [{"role": role, "content": "a"}]})).status == status, role
    for content in (None, [{"type": "text", "text": "a"}]):
        assert (await api.post(URL, {"messages": [{"role": "user", "content": content}]})).status == 422, content


@pytest.mark.fact("chatbot-id")
async def test_the_id_is_an_integer(api):
    reply = await api.post("chatbots/seven/chat/completions/", SAID)
    assert (reply.status, reply.detail[0]["loc"]) == (422, ["path", "chatbot_id"])


@pytest.mark.fact("chatbot-404")
async def test_an_unknown_chatbot_is_404(api):
    assert (await api.post("chatbots/12345/chat/completions/", SAID)).status == 404


@pytest.mark.fact("chatbot-400")
async def test_an_unsupported_type_is_400(api):
    assert (await api.post("chatbots/9/chat/completions/", SAID)).status == 400


@pytest.mark.fact("limit-chatbot")
async def test_chatbots_take_30_calls_a_minute(api):
    passed = [(await api.post(URL, SAID)).status for _ in range(31)]
    assert passed == [200] * 30 + [429]
    assert (await api.chat()).status == 200
    assert (await api.post(URL, SAID, key=api.beta)).status == 200
    api.clock.forward(59)
    assert (await api.post(URL, SAID)).status == 429
    api.clock.forward(1)
    assert (await api.post(URL, SAID)).status == 200
