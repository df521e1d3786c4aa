"""The judge of request bodies: strict JSON or a 400, and the few facts later stages need, never the tree.

Forwarded bytes are the bytes that were judged, so nothing may mean one thing here and another behind the gateway: a
member named twice, NaN, a number no double holds, an escaped half of a surrogate pair. Refusals name a place and never
repeat what stood there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from proxy.core.jsonrpc import Call, call_of
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

    CHAT = "chat"
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    RESPONSES = "responses"
    GATEWAY = "gateway"  # speech, music, images, video
    MCP = "mcp"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a body says, as far as deciding, pricing and caching ask.

    n:           answers or images asked for, at least 1.
    output_max:  largest bound on generated tokens under any of its names, None when there is none above 0.
    stored:      `store` is neither absent, null nor false.
    references:  parts that name a file id or a URL instead of carrying their data.
    text_bytes:  UTF-8 bytes of all text and names, `_SCALAR_BYTES` per other value, without the media's base64.
    characters:  code points of a text `input` (speech is bounded by them).
    digest:      SHA-256 of the body as it came.
    call:        of an MCP body.
    """

    model: str | None
    stream: bool
    n: int
    output_max: int | None
    include_usage: bool
    temperature_zero: bool
    seeded: bool
    stored: bool
    background: bool
    previous_response_id: str | None
    response_format: str | None
    images: int
    files: int
    audio: int
    references: int
    text_bytes: int
    characters: int
    tools: int
    digest: bytes
    call: Call | None = None


def judge(body: bytes, dialect: Dialect) -> Facts:
    """Raises ProxyError `bad_request` for what is not strict JSON, no object, or names a bound in a wrong type."""
    tree = _decoded(body)
    text_bytes = _survey(body, tree)
    digest = sha256(body).digest()
    if dialect is Dialect.MCP:
        return _facts({}, text_bytes, digest, call_of(tree, body))
    if not isinstance(tree, dict):
        raise ProxyError("bad_request", "The body must be a JSON object.")
    return _facts(tree, text_bytes, digest, None)


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
    return f"nested deeper than {DEPTH_MAX}" if "depth" in error.msg else error.msg


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
_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRING: Final = re.compile(_TEXT, re.DOTALL)
_NAME_OR_BRACKET: Final = re.compile(rb"(" + _TEXT + rb")\s*+:|" + _TEXT + rb"|[{}\[\]]", re.DOTALL)


def _survey(body: bytes, tree: Any) -> int:
    """Refuse what the decoder lets pass: depth, names given twice, endless digits. Returns the bytes of all text."""
    texts: list[str] = []
    members = scalars = depth = 0
    level: list[Any] = [tree]
    while level:
        depth += 1
        below: list[Any] = []
        for node in level:
            children: Iterable[Any] = node
            if type(node) is dict:
                members += len(node)
                texts.extend(node)
                children = node.values()
            elif type(node) is not list:
                continue
            for child in children:
                kind = type(child)
                if kind is str:
                    texts.append(child)
                elif kind is dict or kind is list:
                    below.append(child)
                else:
                    scalars += 1
        if below and depth == DEPTH_MAX:
            raise ProxyError("bad_request", f"The body is nested deeper than {DEPTH_MAX}.")
        level = below
    text = "".join(texts)
    _refuse_repeated_names(body, members, text)
    _refuse_long_numbers(body)
    return (len(text) if text.isascii() else len(text.encode())) + scalars * _SCALAR_BYTES


def _refuse_repeated_names(body: bytes, members: int, text: str) -> None:
    # A repeated name leaves one member fewer in the tree than there are colons outside strings. Counting the colons
    # inside strings in what was decoded saves taking the strings out, unless one may have been written as an escape.
    if b"\\u003" not in body and body.count(b":") == members + text.count(":"):
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
    if _TOO_MANY_DIGITS not in body.translate(_DIGITS):
        return
    # Strings become blanks of the same length, so that places stay.
    bare = _STRING.sub(lambda found: b" " * len(found[0]), body)
    if found := _LONG_NUMBER.search(bare):
        raise ProxyError("bad_request", f"A number at byte {found.start()} has more than {DIGITS_MAX} digits.")


# --- facts ---

_OUTPUT_BOUNDS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_COUNTS: Final = ("n", "number_of_images")


def _facts(tree: Mapping[str, Any], text_bytes: int, digest: bytes, call: Call | None) -> Facts:
    images = files = audio = data_bytes = references = 0
    for part in _media(tree):
        images += part.kind is Kind.IMAGE
        files += part.kind is Kind.FILE
        audio += part.kind is Kind.AUDIO
        data_bytes += part.data_bytes
        references += part.is_reference
    options = tree.get("stream_options")
    spoken = tree.get("input")
    temperature = tree.get("temperature")
    return Facts(
        model=_text(tree, "model"),
        stream=tree.get("stream") is True,
        n=max(_largest(tree, _COUNTS), 1),
        output_max=_largest(tree, _OUTPUT_BOUNDS) or None,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        temperature_zero=type(temperature) in (int, float) and temperature == 0,
        seeded=tree.get("seed") is not None,
        stored=_is_set(tree, "store"),
        background=_is_set(tree, "background"),
        previous_response_id=_text(tree, "previous_response_id"),
        response_format=tree["response_format"] if isinstance(tree.get("response_format"), str) else None,
        images=images,
        files=files,
        audio=audio,
        references=references,
        text_bytes=text_bytes - data_bytes,
        characters=len(spoken) if isinstance(spoken, str) else 0,
        tools=_length(tree.get("tools")) + _length(tree.get("functions")),
        digest=digest,
        call=call,
    )


def _is_set(tree: Mapping[str, Any], name: str) -> bool:
    """Anything but absent, null and JSON's false: what a lenient server may read as true."""
    value = tree.get(name)
    return value is not None and value is not False


def _text(tree: Mapping[str, Any], name: str) -> str | None:
    value = tree.get(name)
    if value is None or isinstance(value, str):
        return value
    raise ProxyError("bad_request", f"{name} must be text.")


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 0


def _largest(tree: Mapping[str, Any], names: Iterable[str]) -> int:
    """The largest of some figures that bound the price, 0 when there is none above.

    Servers read "5" and 5.0 as 5, so what is no whole number is refused rather than overlooked.
    """
    largest = 0
    for name in names:
        value = tree.get(name)
        if value is None:
            continue
        if type(value) is not int:
            raise ProxyError("bad_request", f"{name} must be a whole number.")
        largest = max(largest, value)
    return largest


class Kind(Enum):
    """What a part that is no text holds."""

    IMAGE = "image"
    FILE = "file"
    AUDIO = "audio"


class Part(NamedTuple):
    """One such part; `data_bytes` of base64 are no text."""

    kind: Kind
    data_bytes: int
    is_reference: bool


# fmt: off
_PARTS: Final[Mapping[str, tuple[Kind, tuple[str, ...]]]] = {
    # type of the part         kind         where its data, URL or file id may stand; "." is the part itself
    "image_url":              (Kind.IMAGE, ("image_url",)),
    "input_image":            (Kind.IMAGE, (".",)),
    "image":                  (Kind.IMAGE, ("source",)),
    "image_generation_call":  (Kind.IMAGE, (".",)),
    "computer_screenshot":    (Kind.IMAGE, (".",)),
    "video_url":              (Kind.FILE,  ("video_url",)),
    "document":               (Kind.FILE,  ("source",)),
    "file":                   (Kind.FILE,  ("file", "source")),
    "input_file":             (Kind.FILE,  (".",)),
    "container_upload":       (Kind.FILE,  (".",)),
    "input_audio":            (Kind.AUDIO, ("input_audio", ".")),
    "audio":                  (Kind.AUDIO, ("source", ".")),
}
_BASE64: Final = ("data", "file_data", "result")
_LINKS:  Final = ("url", "image_url", "file_url")
# fmt: on

_CARRIERS: Final = ("content", "output")
"""Members through which parts are reached. A tool's schema or arguments may look like a part and are text still."""


def _media(tree: Mapping[str, Any]) -> Iterator[Part]:
    for name in ("messages", "input", "system"):
        yield from _parts(tree.get(name))
    for name in ("input_images", "input_urls"):
        for link in tree[name] if isinstance(tree.get(name), list) else ():
            yield Part(Kind.IMAGE, _data_url_bytes(link), not _data_url_bytes(link))


def _parts(value: object) -> Iterator[Part]:
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and kind in _PARTS:
            yield _part(value, *_PARTS[kind])
        for name in _CARRIERS:
            if name in value:
                yield from _parts(value[name])
        if isinstance(source := value.get("source"), dict):
            yield from _parts(source.get("content"))


def _part(value: Mapping[str, Any], kind: Kind, places: tuple[str, ...]) -> Part:
    data_bytes, is_reference = 0, False
    for place in places:
        holder = value if place == "." else value.get(place)
        if isinstance(holder, str):
            holder = {"url": holder}
        if not isinstance(holder, dict):
            continue
        # A document's source may be plain text, which is text.
        if holder.get("type") != "text":
            data_bytes += sum(len(holder[name]) for name in _BASE64 if isinstance(holder.get(name), str))
        for name in _LINKS:
            if isinstance(link := holder.get(name), str):
                data_bytes += _data_url_bytes(link)
                is_reference = is_reference or not _data_url_bytes(link)
        is_reference = is_reference or holder.get("file_id") is not None
    return Part(kind, data_bytes, is_reference)


def _data_url_bytes(link: object) -> int:
    return len(link) if isinstance(link, str) and link.startswith("data:") else 0


# --- rewriting one value ---


class Member(NamedTuple):
    """Where one top-level member stands: bytes [name_start, name_end) with quotes, and [start, end) of its value."""

    name_start: int
    name_end: int
    start: int
    end: int


Edit = tuple[int, int, bytes]
"""Bytes [start, end) are replaced."""

_GAP: Final = re.compile(rb"[\s,:]*+")
_VALUE: Final = re.compile(_TEXT + rb"|[^\s,:\"{}\[\]]++", re.DOTALL)
_NESTING: Final = re.compile(_TEXT + rb"|([{\[]++)|([}\]])", re.DOTALL)


def members(body: bytes) -> dict[str, Member]:
    """The top-level members of a judged object. Costs as much as judging: only rules that rewrite call it."""
    found: dict[str, Member] = {}
    at = _gap(body, body.index(b"{") + 1)
    while body[at] == 0x22:
        name_start, name_end = at, _value_end(body, at)
        start = _gap(body, name_end)
        end = _value_end(body, start)
        found[orjson.loads(body[name_start:name_end])] = Member(name_start, name_end, start, end)
        at = _gap(body, end)
    return found


def _gap(body: bytes, at: int) -> int:
    found = _GAP.match(body, at)
    return found.end() if found else at


def _value_end(body: bytes, at: int) -> int:
    if found := _VALUE.match(body, at):
        return found.end()
    depth = 0
    for step in _NESTING.finditer(body, at):
        if step[1]:
            depth += len(step[1])
        elif step[2]:
            depth -= 1
            if depth == 0:
                return step.end()
    raise ValueError("the body was not judged: a value does not end")


def splice(body: bytes, edits: Iterable[Edit]) -> bytes:
    """The body with these edits, which must not overlap; every other byte stays as it came."""
    pieces, at = [], 0
    for start, end, instead in sorted(edits):
        if start < at:
            raise ValueError("edits overlap")
        pieces += [body[at:start], instead]
        at = end
    return b"".join([*pieces, body[at:]])


def addition(body: bytes, name: str, value: Any) -> Edit:
    """The edit that puts one more member in front of the others."""
    at = body.index(b"{") + 1
    comma = b"" if body[_gap(body, at)] == 0x7D else b","
    return at, at, orjson.dumps(name) + b":" + orjson.dumps(value) + comma
