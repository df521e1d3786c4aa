"""Every route that reaches the gateway, in every spelling, through the proxy: each arrives in the gateway's own form."""

from itertools import product

from yarl import URL

from proxy.server.routes import ROUTES
from tests.proxies import CHAT, NATIVE, RESPONSE

PREFIXES = ("", "/v1", "/v1/gateway")
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
COUNT = {key: value for key, value in NATIVE.items() if key != "max_tokens"}
BODIES = {
    "chat": CHAT,
    "chatbot": {"messages": CHAT["messages"]},
    "native": NATIVE,
    "native-count": COUNT,
    "responses": RESPONSE,
    "cancel": {},
    "speech": {"model": "speech-standard", "input": "a"},
    "music": {"model": "music-songs", "prompt": "a"},
    "images": {"model": "image-search-flash", "prompt": "a"},
    "videos": {"model": "video-97", "prompt": "a"},
    "mcp": CALL,
}


async def ids(front):
    """An id of each kind that belongs to this team, and is ready where that matters."""
    response = await front.post("/v1/responses", {**RESPONSE, "background": True})
    image = await front.post("/v1/images/generate", {"model": "image-a-sdxl", "prompt": "a"})
    video = await front.post("/v1/video/generation", {"model": "video-200", "prompt": "a"})
    identifier = video.json["operation_id"]
    for _ in range(10):
        if (await front.get(f"/v1/video/generation/{identifier}")).json["status"] == "completed":
            break
    return {
        "response": response.json["id"],
        "cancel": response.json["id"],
        "image": image.json["operation_id"],
        "video": identifier,
        "download": identifier,
        "chatbot": "7",
    }


async def test_every_route_answers_in_every_spelling_and_arrives_in_the_gateways_form(front, gateway):
    gateway.set_credits("alpha", 10**6 * 10**8)
    known = await ids(front)
    for route, prefix, slash in product(ROUTES, PREFIXES, ("", "/")):
        if route.upstream is None:
            continue
        values = {"id": known.get(route.name, ""), "suite": "calc"}
        values["model"] = "claude-sonnet-x" if route.native else "open%2Fllama-large"
        headers = {"cache-control": "no-store", **({"anthropic-version": "2023-06-01"} if route.native else {})}
        target = f"{prefix}/{route.path.replace('+', '').format(**values)}{slash}"
        before = len(gateway.journal)
        url, body = URL(front.url + target, encoded=True), BODIES.get(route.name)
        async with front.client.request(route.method, url, json=body, headers=headers) as answer:
            assert answer.status == 200, (route.name, target, await answer.read())
            await answer.read()
            assert not answer.history, "never by a redirect"
        (seen,) = list(gateway.journal)[before:]
        wanted = "/v1/gateway/" + route.upstream.format(segment="partner", **values)
        assert seen.target.partition("?")[0] == wanted, (route.name, target)
        assert seen.status == 200
