import asyncio
import base64


async def control(api, method, path, body=None):
    reply = await api.call(method, f"/_emulator/{path}", key=None, json=body)
    return reply.json if reply.status == 200 else reply


async def test_control_needs_no_key_and_is_not_in_the_journal(api):
    await control(api, "GET", "state")
    assert len(api.gateway.journal) == 0


async def test_the_journal_can_be_read(api):
    await api.chat()
    rows = await control(api, "GET", "journal?over=1")
    assert [(row["method"], row["status"], row["member"], row["finished"]) for row in rows] == [
        ("POST", 200, "alpha", True)
    ]
    assert float(rows[0]["charged_credits"]) > 0


async def test_the_state_can_be_read(api):
    await api.add()
    state = await control(api, "GET", "state")
    assert state["credits"] == {"alpha": "1000", "beta": "1000"}
    assert state["limits_used"]["key-day:sk-emu-alpha-1"] == 1
    assert state["tool_calls"] == {"mcp:calc": 1}
    assert state["open_connections"] >= 1


async def test_faults_can_be_armed_and_cleared(api):
    await control(api, "POST", "faults", {"fault": "429 retry=5 times=1"})
    await control(api, "POST", "faults", {"name": "status", "code": 451, "message": "two words", "times": 1})
    reply = await api.chat()
    assert (reply.status, reply.headers["Retry-After"]) == (429, "5")
    await control(api, "DELETE", "faults")
    await control(api, "POST", "faults", {"name": "status", "code": 451, "message": "two words"})
    assert (await api.chat()).refusal == (451, "two words")
    await control(api, "DELETE", "faults")
    assert (await api.chat()).status == 200


async def test_the_faults_there_are_can_be_listed(api):
    assert (await control(api, "GET", "faults"))["no-usage"] == "usage nowhere"


async def test_gates_can_be_waited_for_and_opened(api):
    task = asyncio.create_task(api.chat("[[fault:slow gate=a]]"))
    await control(api, "POST", "gates", {"wait": "a"})
    await control(api, "POST", "gates", {"open": "a"})
    assert (await task).status == 200


async def test_credits_can_be_set(api):
    assert await control(api, "POST", "credits", {"member": "alpha", "credits": "0.00000001"}) == {
        "alpha": "0.00000001"
    }
    assert (await api.get("credits/")).body == b'{"credits":0.00000001}'


async def test_recordings_can_be_loaded(api):
    body = bytes(range(256))
    given = {"name": "one", "base64": base64.b64encode(body).decode(), "split": 10, "headers": {"Content-Type": "a/b"}}
    assert await control(api, "POST", "raw", given) == {"recordings": ["one"]}
    reply = await api.chat("[[fault:raw name=one]]")
    assert (reply.body, reply.headers["Content-Type"]) == (body, "a/b")


async def test_reset_makes_everything_new(api):
    await api.chat()
    assert await control(api, "POST", "reset") == {"reset": True}
    assert await control(api, "GET", "journal") == []


async def test_mistakes_are_explained(api):
    assert (await control(api, "GET", "nothing")).status == 404
    assert (await control(api, "GET", "journal?over=1&within=0.01")).status == 400
    assert (await control(api, "POST", "faults", {"fault": "nonsense"})).status == 400
    assert (await control(api, "POST", "credits", {"member": "nobody", "credits": "1"})).status == 400
    assert (await control(api, "POST", "credits", {"member": "alpha", "credits": "x"})).status == 400
