"""The judge of request bodies: strict JSON or a 400, and the few facts later stages need, never the tree.

Forwarded bytes are the bytes that were judged, so nothing may mean one thing here and another behind the gateway: a
member named twice, NaN, a number no double holds, an escaped half of a surrogate pair. Refusals name a place and never
repeat what stood there.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from proxy.core.cachekey import may_be_rounded
from proxy.core.jsonrpc import Call, call_of
from proxy.core.names import NAME_MAX
from proxy.core.parts import Kind, Part, parts_of
from proxy.errors import ProxyError

DEPTH_MAX: Final = 64
DIGITS_MAX: Final = 20
"""Digits of a whole number: 2^64 has 20, and no parameter needs more."""

LARGE: Final = 256 * 1024
"""Bytes above which a body is judged in another process: decoding holds the interpreter lock."""

_SCALAR_BYTES: Final = 8
"""A number, true, false or null counts as this much text: two to four tokens, as models write them."""


class Dialect(Enum):
    """What a request body is written in."""

    __hash__ = object.__hash__  # by identity, which takes no call

    CHAT = "chat"
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    RESPONSES = "responses"
    GATEWAY = "gateway"  # speech, music, images, video
    MCP = "mcp"


_CHAT, _RESPONSES, _MCP = Dialect.CHAT, Dialect.RESPONSES, Dialect.MCP
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""


class Facts(NamedTuple):
    """What a body says, as far as deciding, pricing and caching ask.

    n:           answers asked for, at least 1.
    pictures:    images asked for under the gateway's own name, at least 1.
    output_max:  largest bound on generated tokens under the names that this dialect reads, None when there is none
                 above 0. A bound under another name bounds nothing.
    thinking_max: most tokens of thinking that come on top of it, in a dialect where they do.
    stored:      `store` is neither absent, null nor false.
    conversation: the call reads and writes a conversation that the gateway keeps, of this id in a Responses call.
    references:  parts that name a file id or a URL instead of carrying their data, and what of a Responses body the
                 gateway would have to have: a stored prompt, items of earlier answers.
    text_bytes:  UTF-8 bytes of all text and names, `_SCALAR_BYTES` per other value, without the media's base64.
    characters:  code points of a text `input` (speech is bounded by them).
    reasons:     thinking was asked for, of which a stream need not show anything.
    digest:      SHA-256 of the body as it came, b"" where it was not taken.
    call:        of an MCP body.
    """

    model: str | None = None
    stream: bool = False
    n: int = 1
    pictures: int = 1
    output_max: int | None = None
    thinking_max: int = 0
    include_usage: bool = False
    temperature_zero: bool = False
    seeded: bool = False
    stored: bool = False
    background: bool = False
    previous_response_id: str | None = None
    response_format: str | None = None
    images: int = 0
    files: int = 0
    audio: int = 0
    references: int = 0
    text_bytes: int = 0
    characters: int = 0
    tools: int = 0
    reasons: bool = False
    digest: bytes = b""
    call: Call | None = None
    conversation: bool = False
    conversation_id: str | None = None


def judge(body: bytes, dialect: Dialect) -> Facts:
    """Raises ProxyError `bad_request` for what is not strict JSON, no object, or names a bound in a wrong type."""
    return judged(body, dialect)[0]._replace(digest=sha256(body).digest())


def judged(body: bytes, dialect: Dialect) -> tuple[Facts, dict[str, Any] | None]:
    """As `judge`, but for the digest; with what was decoded, where every number in it is as it was written."""
    tree = _decoded(body)
    text_bytes, typed, exact = _survey(body, tree)
    if dialect is _MCP:
        return Facts(text_bytes=text_bytes, call=call_of(tree, body)), None
    if not isinstance(tree, dict):
        raise ProxyError("bad_request", "The body must be a JSON object.")
    return _facts(tree, text_bytes, dialect, typed=typed), tree if exact else None


def judge_large(body: bytes, dialect: Dialect) -> Facts | str:
    """`judge` for another process: the message of the `bad_request` is returned, since exceptions travel badly."""
    try:
        return judge(body, dialect)
    except ProxyError as refused:
        return refused.message


# --- strictness ---


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProxyError("bad_request", f"The body is not strict JSON {_place(body, error)}: {_said(error)}.") from None


def _said(error: orjson.JSONDecodeError) -> str:
    # The decoder has a limit of its own, above ours; its words for it changed between releases.
    too_deep = "depth" in error.msg or "recursion" in error.msg.lower()
    return f"nested deeper than {DEPTH_MAX}" if too_deep else error.msg


def _place(body: bytes, error: orjson.JSONDecodeError) -> str:
    """The decoder counts characters; a caller's editor and a proxy's log count bytes."""
    try:
        at = len(body.decode()[: error.pos].encode())
    except UnicodeDecodeError as broken:
        at = broken.start
    return f"at byte {at}"


_DIGITS: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))  # "0" to "9"
_TOO_MANY_DIGITS: Final = b"0" * (DIGITS_MAX + 1)
_LONG_NUMBER: Final = re.compile(rb"(?<![.0-9])[0-9]{%d,}" % (DIGITS_MAX + 1))
_NESTS: Final = (dict, list)
_LONG: Final = 10**15
"""Whole numbers below have fewer digits than such that a key takes as they were written."""
_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRING: Final = re.compile(_TEXT, re.DOTALL)
_NAME_OR_BRACKET: Final = re.compile(rb"(" + _TEXT + rb")\s*+:|" + _TEXT + rb"|[{}\[\]]", re.DOTALL)


def _survey(body: bytes, tree: Any) -> tuple[int, bool, bool]:
    """Refuse what the decoder lets pass: depth, names given twice, endless digits.

    Returns the bytes of all text, whether there is a `type` in it, and whether no number can have been rounded.
    """
    texts: list[str] = []
    members = scalars = depth = 0
    fractions, exact, typed = False, True, False
    level: list[Any] = [tree] if type(tree) in _NESTS else []
    while level:
        depth += 1
        below: list[Any] = []
        for node in level:
            children: Iterable[Any] = node
            if type(node) is dict:
                members += len(node)
                texts += node
                typed = typed or "type" in node
                children = node.values()
            for child in children:
                kind = type(child)
                if kind is str:
                    texts.append(child)
                elif kind is dict or kind is list:
                    below.append(child)
                else:
                    scalars += 1
                    if kind is float:
                        fractions = True
                    elif kind is int and not -_LONG < child < _LONG:
                        exact = False
        if below and depth == DEPTH_MAX:
            raise ProxyError("bad_request", f"The body is nested deeper than {DEPTH_MAX}.")
        level = below
    text = "".join(texts)
    _refuse_repeated_names(body, members, text)
    if fractions:
        # The decoder reads whole numbers that do not fit 64 bits as such, too, and those that fit have few digits.
        exact = not may_be_rounded(body)
        if not exact:
            _refuse_long_numbers(body)
    text_bytes = len(text) if text.isascii() else len(text.encode())
    return text_bytes + scalars * _SCALAR_BYTES, typed, exact


def _refuse_repeated_names(body: bytes, members: int, text: str) -> None:
    # A repeated name leaves one member fewer in the tree than there are colons outside strings. Counting the colons
    # inside strings in what was decoded saves taking the strings out, unless one may have been written as an escape.
    inside = text.count(":")
    if body.count(b":") == members + inside and not (inside and body.find(b"\\u003") >= 0):
        return
    if _STRING.sub(b"", body).count(b":") != members:
        where = _repeated_at(body) if len(body) <= LARGE else None
        place = "" if where is None else f" at byte {where}"
        raise ProxyError("bad_request", f"The body gives a member of one object twice{place}; give each name once.")


def _repeated_at(body: bytes) -> int | None:
    seen: list[set[bytes]] = []
    for found in _NAME_OR_BRACKET.finditer(body):
        if found[1] is not None:
            name = orjson.loads(found[1]).encode()
            if name in seen[-1]:
                return found.start()
            seen[-1].add(name)
        elif found[0] in (b"{", b"["):
            seen.append(set())
        elif found[0] in (b"}", b"]"):
            seen.pop()
    return None


def _refuse_long_numbers(body: bytes) -> None:
    if body.translate(_DIGITS).find(_TOO_MANY_DIGITS) < 0:
        return
    # Strings become blanks of the same length, so that places stay.
    bare = _STRING.sub(lambda found: b" " * len(found[0]), body)
    if found := _LONG_NUMBER.search(bare):
        raise ProxyError("bad_request", f"A number at byte {found.start()} has more than {DIGITS_MAX} digits.")


# --- facts ---


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ProxyError("bad_request", f"{name} must be text.")


def _model(name: str, value: Any) -> str:
    if len(model := _text(name, value)) > NAME_MAX:
        raise ProxyError("bad_request", f"{name} is longer than {NAME_MAX} characters; no model has such a name.")
    return model


def _whole(name: str, value: Any) -> int:
    """A figure that bounds the price, 0 where it is below.

    Servers read "5" and 5.0 as 5, so what is no whole number is refused rather than overlooked.
    """
    if type(value) is not int:
        raise ProxyError("bad_request", f"{name} must be a whole number.")
    return value if value > 0 else 0


def _count(name: str, value: Any) -> int:
    return _whole(name, value) or 1


def _true(_name: str, value: Any) -> bool:
    return value is True


def _is_set(_name: str, value: Any) -> bool:
    """Anything but null and JSON's false: what a lenient server may read as true."""
    return value is not False


def _is_zero(_name: str, value: Any) -> bool:
    return type(value) in (int, float) and value == 0


def _there(_name: str, _value: Any) -> bool:
    """What it says depends on other members, too."""
    return True


_TOOLS: Final = ("tools", "functions")
_EFFORTS: Final = ("reasoning_effort", "reasoning", "thinking_budget", "thinking_level")

# fmt: off
_SAYS: Final[Mapping[str, tuple[str, Callable[[str, Any], Any]]]] = {
    # member                 fact it says, and how it is read; null says nothing, as if it were absent
    "model":                ("model",                _model),
    "stream":               ("stream",               _true),
    "n":                    ("n",                    _count),
    "number_of_images":     ("pictures",             _count),
    "temperature":          ("temperature_zero",     _is_zero),
    "seed":                 ("seeded",               lambda _, value: type(value) is int),
    "store":                ("stored",               _is_set),
    "background":           ("background",           _is_set),
    "conversation":         ("conversation",         _is_set),
    "previous_response_id": ("previous_response_id", _text),
    "response_format":      ("response_format",      lambda _, value: value if isinstance(value, str) else None),
    "stream_options":       ("include_usage",
                             lambda _, value: isinstance(value, dict) and value.get("include_usage") is True),
    "input":                ("characters",           lambda _, value: len(value) if isinstance(value, str) else 0),
    **dict.fromkeys(_TOOLS, ("tools",                _there)),
    **dict.fromkeys(("thinking", *_EFFORTS), ("reasons", _there)),
}
_OUTPUT_BOUNDS: Final[Mapping[Dialect, tuple[str, ...]]] = {
    Dialect.CHAT:      ("max_tokens", "max_completion_tokens"),
    Dialect.MESSAGES:  ("max_tokens",),
    Dialect.RESPONSES: ("max_output_tokens",),
}
"""Names that the gateway reads, by its document; what a caller writes under others it does not bound by."""
# fmt: on

THINKING_MAX: Final = 8192
"""Largest `thinking_budget`, by the gateway's document; what a level or a dynamic budget thinks is not shown."""


def _facts(tree: Mapping[str, Any], text_bytes: int, dialect: Dialect, *, typed: bool) -> Facts:
    """typed: whether anything in the tree may have a member `type`."""
    said: dict[str, Any] = {"text_bytes": text_bytes}
    for name, value in tree.items():
        if value is not None and name in _SAYS:
            fact, read = _SAYS[name]
            said[fact] = read(name, value)
    for name in _OUTPUT_BOUNDS.get(dialect, ()):
        if (bound := tree.get(name)) is not None and _whole(name, bound) > said.get("output_max", 0):
            said["output_max"] = bound
    if parts := parts_of(tree, typed=typed):
        said |= _of_parts(parts)
        said["text_bytes"] = text_bytes - sum(part.data_bytes for part in parts)
    if "tools" in said:
        said["tools"] = sum(len(tools) for name in _TOOLS if isinstance(tools := tree.get(name), list))
    if "reasons" in said:
        said["reasons"] = _reasons(tree)
        if dialect is _CHAT:
            said["thinking_max"] = _thinking(tree)
    if dialect is _RESPONSES:
        if "conversation" in said:
            said["conversation_id"] = _conversation(tree["conversation"])
        if named := _named(tree):
            said["references"] = said.get("references", 0) + named
    return Facts(**said)


def _of_parts(parts: Sequence[Part]) -> dict[str, int]:
    kinds = [part.kind for part in parts]
    return {
        "images": kinds.count(Kind.IMAGE),
        "files": kinds.count(Kind.FILE),
        "audio": kinds.count(Kind.AUDIO),
        "references": sum(part.is_reference for part in parts),
    }


def _named(tree: Mapping[str, Any]) -> int:
    """How much a Responses body names that the gateway would have to have."""
    items = tree.get("input")
    count = (
        sum(type(item) is dict and item.get("type") == "item_reference" for item in items) if type(items) is list else 0
    )
    return count + (tree.get("prompt") is not None)


def _thinking(tree: Mapping[str, Any]) -> int:
    """Thinking that one series of chat models does beside what `max_tokens` bounds."""
    budget = tree.get("thinking_budget")
    if tree.get("thinking_level") is None and budget is None:
        return 0
    return min(budget, THINKING_MAX) if type(budget) is int and budget >= 0 else THINKING_MAX


def _reasons(tree: Mapping[str, Any]) -> bool:
    thinking = tree.get("thinking")
    off = not thinking or (isinstance(thinking, dict) and thinking.get("type") == "disabled")
    return not off or any(tree.get(name) for name in _EFFORTS)


def _conversation(value: Any) -> str | None:
    """The id of a conversation, which stands alone or in an object. Raises ProxyError for anything else."""
    if value is False:
        return None
    value = value.get("id") if isinstance(value, dict) else value
    if value is None or isinstance(value, str):
        return value
    raise ProxyError("bad_request", "conversation must be text, or an object with an id that is text.")
