"""What each kind of call costs, to the last unit: with the gateway's own prices, the books say what its double charged."""

import orjson
import pytest

from proxy.core.charges import Basis
from proxy.core.ledger import Settle
from proxy.core.policy import Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from tests.proxies import CHAT, NATIVE, RESPONSE, proxied

CREDIT, MILLION = 10**8, 10**6
# fmt: off
PRICES = PriceTable((
    # kind      names                 units of 1e-8 credit, tokens by the million
    Rule("models",    "gpt-4o-mini",        Price(15 * MILLION, 60 * MILLION)),
    Rule("models",    "gpt-4o",             Price(250 * MILLION, 1000 * MILLION)),
    Rule("models",    "claude-sonnet-x",    Price(300 * MILLION, 1500 * MILLION)),
    Rule("models",    "speech-*",           Price(10 * MILLION)),
    Rule("models",    "music-*",            Price(per_call=1 * CREDIT)),
    Rule("models",    "image-lab-small",    Price(per_image=8 * CREDIT)),
    Rule("chatbots",  "*",                  Price(per_call=1 * CREDIT)),
    Rule("suites",    "*",                  Price(per_call=2 * CREDIT)),
))
SAID = [{"role": "user", "content": "[[words:30]] 물가에서"}]
CALLS = [
    # path                              body                                                                    basis
    ("/v1/chat/completions",            CHAT,                                                                   Basis.USAGE),
    ("/v1/chat/completions",            {"model": "gpt-4o", "messages": SAID, "n": 2},                          Basis.USAGE),
    ("/v1/chat/completions",            {"model": "gpt-4o", "messages": SAID, "stream": True, "stream_options": {"include_usage": True}}, Basis.USAGE),
    ("/v1/messages",                    NATIVE,                                                                 Basis.USAGE),
    ("/v1/messages",                    NATIVE | {"stream": True},                                              Basis.USAGE),
    ("/v1/responses",                   RESPONSE,                                                               Basis.USAGE),
    ("/v1/responses",                   RESPONSE | {"stream": True},                                            Basis.USAGE),
    ("/v1/audio/speech",                {"model": "speech-standard", "input": "물가에서"},                           Basis.USAGE),
    ("/v1/images/generate",             {"model": "image-lab-small", "prompt": "x"},                            Basis.USAGE),
    # The gateway says itself what these cost, whatever the price here.
    ("/v1/audio/music",                 {"model": "music-effects", "prompt": "a heron"},                           Basis.GATEWAY),
    ("/v1/chatbots/7/chat/completions", {"messages": CHAT["messages"]},                                         Basis.GATEWAY),
]
# fmt: on


def rules():
    return Policy(teams={"red": Team("red")}, open_team="red", prices=PRICES)


@pytest.mark.parametrize(("path", "body", "basis"), CALLS)
async def test_the_books_say_what_the_gateway_charged(gateway, path, body, basis):
    async with proxied(gateway.url, rules()) as front:
        reply = await front.post(path, body)
        assert reply.status == 200, reply.body
        await front.running.parts.books.written()
        _, settle = front.entries
        assert isinstance(settle, Settle)
        assert (settle.charge.credits, settle.charge.basis) == (gateway.journal[-1].charged, basis)
        assert settle.charge.credits > 0


@pytest.mark.parametrize(("tool", "member"), [("add", "result"), ("no-such-tool", "error")])
async def test_a_tool_call_costs_its_price_also_where_the_suite_says_an_error(gateway, tool, member):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"a": 1, "b": 2}}}
    async with proxied(gateway.url, rules()) as front:
        reply = await front.post("/v1/mcp/calc", call)
        assert (reply.status, member in reply.json) == (200, True)
        await front.running.parts.books.written()
        assert front.entries[1].charge.credits == 2 * CREDIT


# fmt: off
CUT = [
    # fault, its parameters          stream  charge
    ("reset-before-head", {},        False,  "held"),
    ("reset-in-head",     {},        False,  "held"),
    ("empty-body",        {},        False,  "held"),
    ("html200",           {},        False,  "held"),
    ("500",               {},        False,  "nothing"),
    ("503",               {},        False,  "nothing"),
    ("402",               {},        False,  "nothing"),
    ("422",               {},        False,  "nothing"),
    ("1010",              {},        False,  "nothing"),
    ("cut",               {"after": 4}, True, "seen"),
    ("clean-cut",         {"after": 4}, True, "seen"),
]
# fmt: on


@pytest.mark.parametrize(("fault", "parameters", "stream", "what"), CUT)
async def test_what_a_fault_of_the_gateway_costs_to_the_last_unit(gateway, fault, parameters, stream, what):
    """Seen: a token for every two bytes of the text that arrived, and of the request's."""
    async with proxied(gateway.url, rules()) as front:
        gateway.set_fault(fault, **parameters)
        reply = await front.post("/v1/chat/completions", CHAT | {"max_tokens": 100, "stream": stream})
        await front.running.parts.books.written()
        hold, ending = front.entries
        charged = ending.charge.credits if isinstance(ending, Settle) else 0
        if what == "seen":
            written = b"".join(delta(line) for line in reply.body.split(b"\n") if line.startswith(b"data: {"))
            read = (hold.credits - 100 * 60) // 15
            assert charged == read * 15 + -(-len(written) // 2) * 60
        else:
            assert charged == {"held": hold.credits, "nothing": 0}[what]


def delta(line):
    choices = orjson.loads(line.removeprefix(b"data: ")).get("choices")
    return (choices[0]["delta"].get("content") or "").encode() if choices else b""
