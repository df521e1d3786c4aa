"""What the answers of each family say, event by event: usage, text, errors and how they end.

A reader per family takes one decoded event (or whole body) and notes in an `Answer` what it says. Figures are as the
vendor reports them: chat and Responses count cached tokens inside `input`, native messages beside it. What is not on
the wire stays None. Nothing here raises: a silly value is as good as an absent one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import orjson

from proxy.core.jsonscan import Paths, Run
from proxy.units import credits_of

TOKENS_MAX: Final = 10**12
"""A larger count of tokens is a fault of its writer and is ignored."""

_OPEN_CHOICES_MAX: Final = 1024


class Family(Enum):
    """Whose wire format an answer has."""

    CHAT = "chat"
    MESSAGES = "messages"
    RESPONSES = "responses"
    MCP = "mcp"


class End(Enum):
    """How an answer ended."""

    DONE = "done"
    EOF_AFTER_FINISH = "eof_after_finish"  # complete, though the terminal mark never came
    INCOMPLETE = "incomplete"  # stopped by a bound, terminal, billed
    ERROR = "error"
    CANCELLED = "cancelled"
    CUT = "cut"
    JSON = "json"  # a whole body, no stream


@dataclass(frozen=True, slots=True)
class Failure:
    """An error found inside an answer, in its own words."""

    message: str
    type: str | None = None
    code: str | None = None


@dataclass(slots=True)
class Answer:
    """What has been said so far.

    text_bytes:  UTF-8 bytes of generated text, thinking and arguments.
    begun:       an answer has started: a chunk with choices, a message, a response object.
    answered:    something a caller can use has come: text, a tool call, a refusal, an image.
    ended:       the terminal mark has come.
    own_error:   the error came as the event that this family's SDKs read as one.
    settled:     the usage figures are the closing ones, not a running count.
    sequence:    last `sequence_number` of a Responses stream, -1 before the first.
    open_choices: indices of chat choices that have text and no finish_reason yet.
    """

    model: str | None = None
    response_id: str | None = None
    status: str | None = None
    finish_reason: str | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    web_searches: int | None = None
    credits: Decimal | None = None
    text_bytes: int = 0
    begun: bool = False
    answered: bool = False
    ended: End | None = None
    failure: Failure | None = None
    own_error: bool = False
    settled: bool = False
    sequence: int = -1
    created_at: int = 0
    open_choices: set[int] = field(default_factory=set)


Tree = Mapping[str, Any]
"""A decoded JSON object, whole or pruned to `PATHS`."""


def tokens(value: object) -> int | None:
    """A count of tokens, or None for whatever is none: a float, text, true, a negative or absurd number."""
    return value if type(value) is int and 0 <= value <= TOKENS_MAX else None


def text_size(value: object) -> int:
    """UTF-8 bytes of text, of a measured run, or of the text parts in a list."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, Run):
        return value.size
    if isinstance(value, list):
        return sum(text_size(part.get("text")) for part in value if isinstance(part, dict))
    return 0


def _tree(value: object) -> Tree:
    return value if isinstance(value, dict) else {}


def _trees(value: object) -> list[Tree]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _word(value: object) -> str | None:
    return value[:200] if isinstance(value, str) and value else None


# --- usage ---

Figures = tuple[tuple[str, tuple[str, ...]], ...]

# fmt: off
_CHAT_FIGURES: Final[Figures] = (
    ("input",          ("prompt_tokens",)),
    ("output",         ("completion_tokens",)),
    ("cache_read",     ("prompt_tokens_details", "cached_tokens")),
    ("cache_write",    ("prompt_tokens_details", "cache_write_tokens")),
    ("reasoning",      ("completion_tokens_details", "reasoning_tokens")),
)
_MESSAGES_FIGURES: Final[Figures] = (
    ("input",          ("input_tokens",)),
    ("output",         ("output_tokens",)),
    ("cache_read",     ("cache_read_input_tokens",)),
    ("cache_write",    ("cache_creation_input_tokens",)),
    ("cache_write_1h", ("cache_creation", "ephemeral_1h_input_tokens")),
    ("reasoning",      ("output_tokens_details", "reasoning_tokens")),
    ("reasoning",      ("output_tokens_details", "thinking_tokens")),
    ("web_searches",   ("server_tool_use", "web_search_requests")),
)
_RESPONSES_FIGURES: Final[Figures] = (
    ("input",          ("input_tokens",)),
    ("output",         ("output_tokens",)),
    ("cache_read",     ("input_tokens_details", "cached_tokens")),
    ("reasoning",      ("output_tokens_details", "reasoning_tokens")),
)
# fmt: on


def _note_usage(answer: Answer, usage: object, figures: Figures) -> None:
    """Later figures replace earlier ones one by one; null, absent and silly ones replace nothing."""
    if not isinstance(usage, dict) or not usage:
        return
    for attribute, (first, *rest) in figures:
        value = usage.get(first)
        for step in rest:
            value = _tree(value).get(step)
        count = tokens(value)
        # Relays fill absent usage with zeros, so a zero says less than any figure before it. A native output alone
        # may fall to zero: its start event counts a token that a refusal never generates.
        says_nothing = count == 0 and getattr(answer, attribute) is not None
        may_fall = attribute == "output" and figures is _MESSAGES_FIGURES and not answer.text_bytes
        if count is not None and (not says_nothing or may_fall):
            setattr(answer, attribute, count)


def _note_credits(answer: Answer, value: object) -> None:
    """The gateway's own figure, exact: the caller of a reader has taken it from the wire's text."""
    if type(value) is int or isinstance(value, Decimal):
        try:
            credits_of(value)
        except ValueError:
            return
        answer.credits = Decimal(value)


# --- errors ---


def failure_of(value: object) -> Failure:
    """The words of an error object, of plain text, or of a list of validation errors."""
    if isinstance(value, list):
        said = [item.get("msg") for item in value[:3] if isinstance(item, dict)]
        return Failure("; ".join(word for word in said if isinstance(word, str)) or "unknown error")
    if not isinstance(value, dict):
        return Failure(value[:4096] if isinstance(value, str) and value else "unknown error")
    message = value.get("message") or value.get("detail")
    code = value.get("code")
    return Failure(
        message[:4096] if isinstance(message, str) else "unknown error",
        _word(value.get("type")) if value.get("type") != "error" else None,  # "error" only says that it is one
        str(code) if type(code) is int else _word(code),
    )


def _fail(answer: Answer, value: object, *, own: bool) -> None:
    answer.failure = answer.failure or failure_of(value)
    answer.own_error = answer.own_error or own


def _note_stray_error(answer: Answer, tree: Tree) -> None:
    """An error in none of the family's forms: its SDKs would not see it."""
    if tree.get("detail"):
        _fail(answer, tree["detail"], own=False)
    elif tree.get("error"):
        _fail(answer, tree["error"], own=False)
    elif "error" in (tree.get("type"), tree.get("object")):
        _fail(answer, tree, own=False)


# --- chat ---

_CHAT_TEXTS: Final = ("content", "refusal")
_CHAT_THOUGHTS: Final = ("reasoning_content", "reasoning")


def read_chat(answer: Answer, _name: bytes, tree: Tree) -> None:
    """A chunk of a chat stream, or a whole completion."""
    choices = tree.get("choices")
    if not answer.model:
        answer.model = _word(tree.get("model"))
    if tree.get("error"):
        _fail(answer, tree["error"], own=True)
    elif not isinstance(choices, list):
        _note_stray_error(answer, tree)
    for choice in _trees(choices):
        answer.begun = True
        _read_choice(answer, choice)
    if usage := tree.get("usage"):
        _note_usage(answer, usage, _CHAT_FIGURES)
        answer.settled = answer.finish_reason is not None
    if "credits" in tree:
        _note_credits(answer, tree["credits"])


def _read_choice(answer: Answer, choice: Tree) -> None:
    said = 0
    part = _tree(choice.get("delta") or choice.get("message"))
    for key in _CHAT_TEXTS:
        if text := part.get(key):
            said += text_size(text)
    if part.get("tool_calls") or part.get("function_call") or part.get("audio") or part.get("images"):
        answer.answered = True
        said += _call_size(part)
    if said:
        answer.answered = True
        answer.text_bytes += said
    for key in _CHAT_THOUGHTS:
        if text := part.get(key):
            answer.text_bytes += text_size(text)
            break  # routers send the same thought under both names
    index = choice.get("index", 0)
    if reason := _word(choice.get("finish_reason")):
        answer.finish_reason = reason
        answer.open_choices.discard(index if type(index) is int else 0)
    elif said and type(index) is int and len(answer.open_choices) < _OPEN_CHOICES_MAX:
        answer.open_choices.add(index)


def _call_size(part: Tree) -> int:
    calls = [_tree(call.get("function") or call.get("custom")) for call in _trees(part.get("tool_calls"))]
    calls.append(_tree(part.get("function_call")))
    written = sum(text_size(call.get(key)) for call in calls for key in ("name", "arguments", "input"))
    return written + text_size(_tree(part.get("audio")).get("transcript"))


# --- native messages ---

_SILENT_BLOCKS: Final = frozenset({"text", "thinking", "redacted_thinking"})
_BLOCK_TEXTS: Final = ("text", "thinking", "partial_json")


def read_messages(answer: Answer, name: bytes, tree: Tree) -> None:
    """An event of a native stream, or a whole message. The type inside counts: relays drop the event's name."""
    kind = _word(tree.get("type"))
    if kind == "content_block_delta":
        _read_block(answer, _tree(tree.get("delta")))
    elif kind == "content_block_start":
        _read_block(answer, _tree(tree.get("content_block")))
    elif kind == "message_start":
        _read_message(answer, _tree(tree.get("message")))
    elif kind == "message_delta":
        answer.finish_reason = _word(_tree(tree.get("delta")).get("stop_reason")) or answer.finish_reason
        _note_usage(answer, tree.get("usage"), _MESSAGES_FIGURES)
        answer.settled = answer.settled or bool(tree.get("usage"))
    elif kind == "message_stop":
        answer.ended = End.DONE
    elif kind == "message":
        for block in _trees(tree.get("content")):
            _read_block(answer, block)
        _read_message(answer, tree)
        answer.settled = True
    elif kind == "error" and isinstance(tree.get("error"), dict):
        _fail(answer, tree["error"], own=name == b"error")
    else:
        _note_stray_error(answer, tree)
    if answer.finish_reason == "refusal":
        answer.answered = True
    if "credits" in tree:
        _note_credits(answer, tree["credits"])


def _read_message(answer: Answer, message: Tree) -> None:
    answer.begun = True
    answer.model = _word(message.get("model")) or answer.model
    answer.finish_reason = _word(message.get("stop_reason")) or answer.finish_reason
    _note_usage(answer, message.get("usage"), _MESSAGES_FIGURES)


def _read_block(answer: Answer, block: Tree) -> None:
    kind = _word(block.get("type"))
    for key in _BLOCK_TEXTS:
        if text := block.get(key):
            answer.text_bytes += text_size(text)
            answer.answered = answer.answered or key == "text"
    if kind is not None and kind not in _SILENT_BLOCKS and not kind.endswith("_delta"):
        answer.answered = True
        answer.text_bytes += text_size(block.get("name")) + _json_size(block.get("input"))


def _json_size(value: object) -> int:
    try:
        return len(orjson.dumps(value)) if value else 0
    except TypeError:  # nested deeper than the encoder goes
        return 0


# --- responses ---

# fmt: off
_RESPONSE_ENDS: Final[Mapping[str | None, End]] = {
    "response.completed":  End.DONE,
    "response.incomplete": End.INCOMPLETE,
    "response.failed":     End.ERROR,
    "response.cancelled":  End.CANCELLED,
}
# fmt: on
_RESPONSE_THOUGHTS: Final = ("response.reasoning", "response.audio")


def read_responses(answer: Answer, _name: bytes, tree: Tree) -> None:
    """An event of a Responses stream, or a whole response object."""
    kind = _word(tree.get("type"))
    sequence = tokens(tree.get("sequence_number"))
    if sequence is not None:
        answer.sequence = sequence
    if kind is not None and kind.endswith(".delta"):
        if said := text_size(tree.get("delta")):
            answer.text_bytes += said
            answer.answered = answer.answered or not kind.startswith(_RESPONSE_THOUGHTS)
    elif isinstance(tree.get("response"), dict):
        _read_response(answer, tree["response"])
        if end := _RESPONSE_ENDS.get(kind):
            answer.ended = end
            answer.settled = answer.settled or bool(tree["response"].get("usage"))
            if end is End.ERROR:
                _fail(answer, tree["response"].get("error"), own=True)
    elif tree.get("object") == "response":
        _read_response(answer, tree)
        answer.settled = bool(tree.get("usage"))
        if tree.get("error"):
            _fail(answer, tree["error"], own=True)
    elif kind == "response.output_item.added":
        _read_item(answer, _tree(tree.get("item")))
    elif kind is None or not kind.startswith("response."):
        _note_stray_error(answer, tree)
    if "credits" in tree:
        _note_credits(answer, tree["credits"])


def _read_response(answer: Answer, response: Tree) -> None:
    answer.begun = True
    answer.response_id = answer.response_id or _identifier(response.get("id"))
    answer.model = _word(response.get("model")) or answer.model
    answer.status = _word(response.get("status")) or answer.status
    answer.created_at = tokens(response.get("created_at")) or answer.created_at
    answer.finish_reason = _word(_tree(response.get("incomplete_details")).get("reason")) or answer.finish_reason
    _note_usage(answer, response.get("usage"), _RESPONSES_FIGURES)
    # The closing object repeats what the deltas brought; without deltas it is the only place.
    said = sum(_read_item(answer, item) for item in _trees(response.get("output")))
    answer.text_bytes = max(answer.text_bytes, said)
    if "credits" in response:
        _note_credits(answer, response["credits"])


def _identifier(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 1024 else None


def _read_item(answer: Answer, item: Tree) -> int:
    """Bytes written in one output item; notes whether it is something a caller can use."""
    parts = _trees(item.get("content"))
    said = sum(text_size(part.get("text")) + text_size(part.get("refusal")) for part in parts)
    kind = _word(item.get("type")) or ""
    if (said and kind != "reasoning") or kind.endswith("_call"):
        answer.answered = True
    called = text_size(item.get("name")) + text_size(item.get("arguments")) + text_size(item.get("input"))
    return said + called + text_size(item.get("summary"))


# --- tool suites ---


def read_mcp(answer: Answer, _name: bytes, tree: Tree) -> None:
    """A JSON-RPC message; the response ends the answer, and an error in it is still an executed call."""
    if "method" in tree or not ("result" in tree or "error" in tree):
        return
    answer.begun = answer.answered = True
    answer.ended = End.DONE
    if tree.get("error"):
        answer.status = "rpc_error"
        answer.failure = failure_of(tree["error"])
    else:
        answer.status = "tool_error" if _tree(tree.get("result")).get("isError") is True else "result"


Read = Callable[[Answer, bytes, Tree], None]

READERS: Final[Mapping[Family, Read]] = {
    Family.CHAT: read_chat,
    Family.MESSAGES: read_messages,
    Family.RESPONSES: read_responses,
    Family.MCP: read_mcp,
}

_CHOICE_TEXTS: Final = (*_CHAT_TEXTS, *_CHAT_THOUGHTS, "tool_calls.*.function.arguments", "audio.transcript")
_ITEM_TEXTS: Final = ("content.*.text", "content.*.refusal", "arguments", "input", "summary.*.text")

PATHS: Final = Paths.of(
    whole=(
        *("type", "object", "model", "id", "status", "usage", "error", "detail", "code", "message", "credits"),
        *("sequence_number", "created_at", "stop_reason", "method", "result.isError", "incomplete_details"),
        *("choices.*.index", "choices.*.finish_reason", "content.*.type", "output.*.type", "item.type"),
        *("delta.type", "delta.stop_reason", "content_block.type"),
        *(f"choices.*.{part}.{sign}" for part in ("delta", "message") for sign in ("images.*.type", "audio.id")),
        *(f"message.{key}" for key in ("model", "stop_reason", "usage")),
        *(f"response.{key}" for key in ("id", "model", "status", "usage", "error", "created_at", "incomplete_details")),
        *("response.output.*.type", "response.credits"),
    ),
    sized=(
        *(f"choices.*.{part}.{text}" for part in ("delta", "message") for text in _CHOICE_TEXTS),
        *("delta", *(f"{part}.{text}" for part in ("delta", "content_block", "content.*") for text in _BLOCK_TEXTS)),
        *(f"{output}.{text}" for output in ("output.*", "response.output.*", "item") for text in _ITEM_TEXTS),
    ),
)
"""What the readers look at in a text too long to decode; a path that is missing here is unknown there."""
