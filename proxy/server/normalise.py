"""Normalise: what the caller sent becomes what the gateway takes, by named rules, or an answer of our own.

The rules are those of `docs/architecture.md`; body bytes are unchanged unless a rule says so.
"""

from collections.abc import Coroutine, Mapping
from hashlib import sha256
from typing import Final
from urllib.parse import quote

import orjson
from aiohttp import web

from proxy import __version__
from proxy.core import speech
from proxy.core.body import LARGE, Facts
from proxy.core.body import Dialect as BodyKind
from proxy.core.chatbot import asked_as_chatbot, chatbot_of
from proxy.core.headers import headers_up
from proxy.core.injected import UsageTaker, asking
from proxy.core.media import BINARY
from proxy.core.owners import Claim
from proxy.core.policy import NativeVersion, StreamUsage
from proxy.core.splice import members, removal, renamed, splice
from proxy.errors import ProxyError
from proxy.mcp import local as mcp_local
from proxy.server import owning
from proxy.server.call import Call
from proxy.server.heads import Kind
from proxy.server.parts import Parts
from proxy.server.routes import ROUTE, Dialect, Match, Route, upstream_target
from proxy.server.upstream import EVENTS, Headers, headers_of, outgoing

USER_AGENT = f"sluicegate/{__version__}"
"""Never empty: the gateway's edge answers an empty one with a page instead of an error."""

BOTH_TYPES = "application/json, text/event-stream"
"""What a tool suite wants to see in `Accept`, whatever the caller takes."""

_KINDS: Final = {
    "chat": BodyKind.CHAT,
    "chatbot": BodyKind.CHAT,
    "native": BodyKind.MESSAGES,
    "native-count": BodyKind.COUNT_TOKENS,
    "responses": BodyKind.RESPONSES,
    "cancel": BodyKind.GATEWAY,
    "speech": BodyKind.GATEWAY,
    "music": BodyKind.GATEWAY,
    "images": BodyKind.GATEWAY,
    "videos": BodyKind.GATEWAY,
    "mcp": BodyKind.MCP,
}
"""How the body of a route is judged; other routes send none."""

_INJECT, _NATIVE, _MCP, _PIN = StreamUsage.INJECT, Dialect.NATIVE, Dialect.MCP, NativeVersion.PIN
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""

KINDS_MAX: Final = 16
"""Kinds of requests with one head whose lines are remembered; more come only of keys that were replaced."""

IMAGE_NAMES: Final = {"n": "number_of_images", "size": "image_size"}
"""What image SDKs call the gateway's parameters."""


Passed = web.StreamResponse | None


def normalise(call: Call, parts: Parts) -> Passed | Coroutine[None, None, Passed]:
    """Judge the body and make the outgoing request. Raises ProxyError `bad_request`; answers MCP calls of ours."""
    assert call.match is not None
    route = call.match.route
    if route.upstream is None:
        return None
    kind = _KINDS.get(route.name)
    if kind is None or not (call.body or route.name != "cancel"):
        _make(call, parts, route, b"")
        return None
    judged = parts.judge.at_once(call.body, kind)
    if judged is None:
        return _normalise_large(call, parts, route, kind)
    facts, tree = judged
    call.decoded = call.body, tree
    return _normalised(call, parts, route, facts)


async def _normalise_large(call: Call, parts: Parts, route: Route, kind: BodyKind) -> Passed:
    return _normalised(call, parts, route, await parts.judge.facts(call.body, kind))


def _normalised(call: Call, parts: Parts, route: Route, facts: Facts) -> Passed:
    # What the server of all suites has handed on was looked at there, under the name its header repeats.
    handed_on = call.facts is not None
    call.judged(facts)
    if call.mcp is not None and not handed_on and (answer := mcp_local.answer(call, parts)) is not None:
        return answer
    _apply_alias(call)
    _make(call, parts, route, _body(call, parts))
    return None


def _make(call: Call, parts: Parts, route: Route, body: bytes) -> None:
    call.out = outgoing((route.method, _target(call, parts), _headers(call, parts), body, call.id))


def _apply_alias(call: Call) -> None:
    """A model name of ours becomes what it stands for, before anybody judges it."""
    facts = call.facts
    if facts is None or facts.model is None or (meant := call.policy.aliases.get(facts.model)) is None:
        return
    call.alias = facts.model
    model = members(call.body)["model"]
    call.body = splice(call.body, [(model.start, model.end, orjson.dumps(meant))])
    call.judged(facts._replace(model=meant, digest=sha256(call.body).digest()))


def _body(call: Call, parts: Parts) -> bytes:
    """The bytes to send: those that came, unless a rule of the route says otherwise."""
    assert call.match is not None
    facts, name = call.facts, call.match.route.name
    if facts is None:
        return call.body
    if name == "chat" and (chatbot := chatbot_of(facts.model)) is not None:
        call.led(Match(ROUTE["chatbot"], {"id": quote(chatbot, safe="")}, call.match.query))
        return asked_as_chatbot(call.body, facts)
    if name == "images" and call.match.route.path == "images/generations":
        return renamed(call.body, IMAGE_NAMES)
    if name == "speech":
        call.wav = speech.checked(facts.characters, facts.response_format)
        return _without_format(call.body) if facts.response_format is not None else call.body
    return _asking_for_usage(call, parts) if name == "chat" else call.body


def _without_format(body: bytes) -> bytes:
    found = members(body).get("response_format")
    return body if found is None else splice(body, [removal(body, found)])


def _asking_for_usage(call: Call, parts: Parts) -> bytes:
    """The body to send: asking for a stream's usage where the policy wants it and the caller did not ask."""
    facts = call.facts
    if call.policy.stream_usage is not _INJECT or facts is None or not facts.stream or facts.include_usage:
        return call.body
    if len(call.body) > LARGE or facts.model in parts.state.no_stream_usage:
        return call.body
    call.taker = UsageTaker()
    return asking(call.body)


def _target(call: Call, parts: Parts) -> str:
    assert call.match is not None
    target = upstream_target(call.match, segment=parts.settings.native_segment)
    if call.match.route.name in _NEED_MODEL:
        return _with_model(call, target, parts)
    if call.dialect is not _NATIVE:
        return target
    # SDKs mark beta calls with ?beta=true, which the gateway's document does not know.
    path, _, query = target.partition("?")
    kept = "&".join(part for part in query.split("&") if part and part != "beta=true")
    return f"{path}?{kept}" if kept else path


_NEED_MODEL: Final = frozenset({"image", "video", "download"})
"""Routes that the gateway answers only with the model the work was begun with."""


def _with_model(call: Call, target: str, parts: Parts) -> str:
    """Fill `?model=` in from what the id was given for. Raises ProxyError where nobody knows the model."""
    assert call.match is not None
    assert call.team is not None
    asked = [part for part in call.match.query.split("&") if part and part != "model="]
    if any(part.startswith("model=") for part in asked):
        return target
    claim, owner = parts.owners.claim(call.match.values["id"], call.team.name, call.at_s)
    if owner is not None and owner.model is not None:
        query = "&".join([*asked, f"model={quote(owner.model, safe='')}"])
        return f"{target.partition('?')[0]}?{query}"
    if claim is Claim.UNKNOWN and owning.passes_unknown(call, parts):
        raise ProxyError("bad_request", "The query parameter model is missing: name the model the work was begun with.")
    return target


def _headers(call: Call, parts: Parts) -> Headers:
    """The header lines of the request, which are the same for the same head on the same route."""
    accept, pinned = BOTH_TYPES if call.dialect is _MCP else _accept(call), call.policy.native_version is _PIN
    kind = call.gateway_key or _our_key(parts), accept, pinned, not call.body
    known = call.known.up if call.known is not None and call.known.match is call.match else {}
    if (headers := known.get(kind)) is None:
        if len(known) >= KINDS_MAX:
            known.clear()
        headers = known[kind] = headers_of(_made(call, parts, kind))
    return headers


def _made(call: Call, parts: Parts, kind: Kind) -> Mapping[str, str]:
    key, accept, pinned, empty = kind
    assert call.match is not None
    up = headers_up(
        call.inbound.headers.items(),
        native_segment=parts.settings.native_segment if call.dialect is _NATIVE else None,
        pin_version=pinned,
        mcp=call.dialect is _MCP,
        ranges=call.match.route.name == "download",
    )
    headers = {**up, **our_headers(parts, key), "accept": accept}
    if via := call.inbound.header("via"):
        headers["via"] = f"{via}, {headers['via']}"
    if empty:
        headers.pop("content-type", None)
    else:
        # The body was read as a JSON object, whatever its sender called it.
        headers["content-type"] = "application/json"
    return headers


def our_own(parts: Parts) -> Headers:
    """The header lines of a request of the proxy's own. Raises ProxyError where it has no gateway key."""
    return headers_of(our_headers(parts, _our_key(parts)))


def our_headers(parts: Parts, key: str) -> dict[str, str]:
    """What the proxy itself says in every request."""
    return {
        "authorization": f"Bearer {key}",
        "user-agent": USER_AGENT,
        "accept-encoding": "identity",
        "accept": "application/json",
        "via": f"1.1 {parts.instance}",
    }


def _accept(call: Call) -> str:
    if call.match is not None and call.match.route.name in BINARY:
        return "*/*"
    return EVENTS if call.facts is not None and call.facts.stream else "application/json"


def _our_key(parts: Parts) -> str:
    key = parts.state.gateway_key
    if key is None:
        raise ProxyError("gateway_key_refused", "The proxy has no gateway key; whoever runs it must set one.")
    return key.reveal()
