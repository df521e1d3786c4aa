"""What the events of each family mean: chat, native messages, Responses, tool suites.

A reader per family takes one decoded event, or a whole body, and notes in an `Answer` what it says. `PATHS` lists all
that readers look at, for texts too long to decode.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from proxy.core.answers import (
    Answer,
    End,
    Family,
    Figures,
    Tree,
    failure_of,
    note_credits,
    note_failure,
    note_stray_error,
    note_usage,
    says,
    text_size,
    tokens,
    tree_in,
    trees_in,
    word,
)
from proxy.core.jsonscan import Paths

# fmt: off
_CHAT_FIGURES: Final[Figures] = (
    ("input",          "prompt_tokens", ""),
    ("output",         "completion_tokens", ""),
    ("cache_read",     "prompt_tokens_details", "cached_tokens"),
    ("cache_write",    "prompt_tokens_details", "cache_write_tokens"),
    ("reasoning",      "completion_tokens_details", "reasoning_tokens"),
)
_MESSAGES_FIGURES: Final[Figures] = (
    ("input",          "input_tokens", ""),
    ("output",         "output_tokens", ""),
    ("cache_read",     "cache_read_input_tokens", ""),
    ("cache_write",    "cache_creation_input_tokens", ""),
    ("cache_write_1h", "cache_creation", "ephemeral_1h_input_tokens"),
    ("reasoning",      "output_tokens_details", "reasoning_tokens"),
    ("reasoning",      "output_tokens_details", "thinking_tokens"),
    ("web_searches",   "server_tool_use", "web_search_requests"),
)
_RESPONSES_FIGURES: Final[Figures] = (
    ("input",          "input_tokens", ""),
    ("output",         "output_tokens", ""),
    ("cache_read",     "input_tokens_details", "cached_tokens"),
    ("reasoning",      "output_tokens_details", "reasoning_tokens"),
)
# fmt: on


# --- chat ---

_OPEN_CHOICES_MAX: Final = 1024
_CHAT_TEXTS: Final = ("content", "refusal")
_CHAT_THOUGHTS: Final = ("reasoning_content", "reasoning")


def read_chat(answer: Answer, _name: bytes, tree: Tree) -> None:
    """A chunk of a chat stream, or a whole completion."""
    choices = tree.get("choices")
    if type(choices) is list and len(choices) == 1 and _is_running_text(choices[0], tree):
        _note_running_text(answer, choices[0], tree)
        return
    if not answer.model:
        answer.model = word(tree.get("model"))
    if tree.get("error"):
        note_failure(answer, tree["error"], own=True)
    elif not isinstance(choices, list):
        note_stray_error(answer, tree)
    for choice in trees_in(choices):
        answer.begun = True
        _read_choice(answer, choice)
    if usage := tree.get("usage"):
        note_usage(answer, usage, _CHAT_FIGURES)
        answer.settled = answer.finish_reason is not None
    if "credits" in tree:
        note_credits(answer, tree["credits"])


_RUNNING: Final = frozenset({"content", "role"})


def _is_running_text(choice: Any, tree: Tree) -> bool:
    """One more bit of text and nothing else: 99 of 100 chunks."""
    if type(choice) is not dict or choice.get("finish_reason") or tree.get("usage"):
        return False
    delta = choice.get("delta")
    plain = type(delta) is dict and type(delta.get("content")) is str and delta.keys() <= _RUNNING
    return plain and "error" not in tree and "credits" not in tree and type(choice.get("index", 0)) is int


def _note_running_text(answer: Answer, choice: Tree, tree: Tree) -> None:
    answer.begun = True
    answer.model = answer.model or word(tree.get("model"))
    if text := choice["delta"]["content"]:
        answer.answered = answer.answered or not text.isspace()
        answer.text_bytes += text_size(text)
        if len(answer.open_choices) < _OPEN_CHOICES_MAX:
            answer.open_choices.add(choice.get("index", 0))


def _read_choice(answer: Answer, choice: Tree) -> None:
    said = 0
    part = tree_in(choice.get("delta") or choice.get("message"))
    for key in _CHAT_TEXTS:
        if text := part.get(key):
            said += text_size(text)
            answer.answered = answer.answered or says(text)
    if part.get("tool_calls") or part.get("function_call") or part.get("audio") or part.get("images"):
        answer.answered = True
        said += _call_size(part)
    answer.text_bytes += said
    answer.refused = answer.refused or bool(part.get("refusal"))
    for key in _CHAT_THOUGHTS:
        if text := part.get(key):
            answer.text_bytes += text_size(text)
            break  # routers send the same thought under both names
    index = choice.get("index", 0)
    if reason := word(choice.get("finish_reason")):
        answer.finish_reason = reason
        answer.open_choices.discard(index if type(index) is int else 0)
    elif said and type(index) is int and len(answer.open_choices) < _OPEN_CHOICES_MAX:
        answer.open_choices.add(index)


def _call_size(part: Tree) -> int:
    calls = [tree_in(call.get("function") or call.get("custom")) for call in trees_in(part.get("tool_calls"))]
    calls.append(tree_in(part.get("function_call")))
    written = sum(text_size(call.get(key)) for call in calls for key in ("name", "arguments", "input"))
    return written + text_size(tree_in(part.get("audio")).get("transcript"))


# --- native messages ---

_SILENT_BLOCKS: Final = frozenset({"text", "thinking", "redacted_thinking"})
_BLOCK_TEXTS: Final = ("text", "thinking", "partial_json")


def read_messages(answer: Answer, name: bytes, tree: Tree) -> None:
    """An event of a native stream, or a whole message. The type inside counts: relays drop the event's name."""
    kind = word(tree.get("type"))
    if kind == "content_block_delta":
        _read_block(answer, tree_in(tree.get("delta")))
    elif kind == "content_block_start":
        _read_block(answer, tree_in(tree.get("content_block")))
    elif kind == "message_start":
        _read_message(answer, tree_in(tree.get("message")))
    elif kind == "message_delta":
        answer.finish_reason = word(tree_in(tree.get("delta")).get("stop_reason")) or answer.finish_reason
        note_usage(answer, tree.get("usage"), _MESSAGES_FIGURES, output_falls=True)
        answer.settled = answer.settled or bool(tree.get("usage"))
    elif kind == "message_stop":
        answer.ended = End.DONE
    elif kind == "message":
        for block in trees_in(tree.get("content")):
            _read_block(answer, block)
        _read_message(answer, tree)
        answer.settled = True
    elif kind == "error" and isinstance(tree.get("error"), dict):
        note_failure(answer, tree["error"], own=name == b"error")
    else:
        note_stray_error(answer, tree)
    if answer.finish_reason == "refusal":
        answer.answered = True
    if "credits" in tree:
        note_credits(answer, tree["credits"])


def _read_message(answer: Answer, message: Tree) -> None:
    answer.begun = True
    answer.model = word(message.get("model")) or answer.model
    answer.finish_reason = word(message.get("stop_reason")) or answer.finish_reason
    note_usage(answer, message.get("usage"), _MESSAGES_FIGURES, output_falls=True)


def _read_block(answer: Answer, block: Tree) -> None:
    kind = word(block.get("type"))
    for key in _BLOCK_TEXTS:
        if text := block.get(key):
            answer.text_bytes += text_size(text)
            answer.answered = answer.answered or (key == "text" and says(text))
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
    kind = word(tree.get("type"))
    sequence = tokens(tree.get("sequence_number"))
    if sequence is not None:
        answer.sequence = sequence
    if kind is not None and kind.endswith(".delta"):
        if said := text_size(tree.get("delta")):
            answer.text_bytes += said
            speaks = says(tree.get("delta")) and not kind.startswith(_RESPONSE_THOUGHTS)
            answer.answered = answer.answered or speaks
            answer.refused = answer.refused or kind == "response.refusal.delta"
    elif isinstance(tree.get("response"), dict):
        _read_response(answer, tree["response"])
        if end := _RESPONSE_ENDS.get(kind):
            answer.ended = end
            answer.settled = answer.settled or bool(tree["response"].get("usage"))
            if end is End.ERROR:
                note_failure(answer, tree["response"].get("error"), own=True)
    elif tree.get("object") == "response":
        _read_response(answer, tree)
        answer.settled = bool(tree.get("usage"))
        if tree.get("error"):
            note_failure(answer, tree["error"], own=True)
    elif kind == "response.output_item.added":
        _read_item(answer, tree_in(tree.get("item")))
    elif kind is None or not kind.startswith("response."):
        note_stray_error(answer, tree)
    if "credits" in tree:
        note_credits(answer, tree["credits"])


def _read_response(answer: Answer, response: Tree) -> None:
    answer.begun = True
    answer.response_id = answer.response_id or _identifier(response.get("id"))
    answer.model = word(response.get("model")) or answer.model
    answer.status = word(response.get("status")) or answer.status
    answer.created_at = tokens(response.get("created_at")) or answer.created_at
    answer.finish_reason = word(tree_in(response.get("incomplete_details")).get("reason")) or answer.finish_reason
    note_usage(answer, response.get("usage"), _RESPONSES_FIGURES)
    # The closing object repeats what the deltas brought; without deltas it is the only place.
    said = sum(_read_item(answer, item) for item in trees_in(response.get("output")))
    answer.text_bytes = max(answer.text_bytes, said)
    if "credits" in response:
        note_credits(answer, response["credits"])


def _identifier(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 1024 else None


def _read_item(answer: Answer, item: Tree) -> int:
    """Bytes written in one output item; notes whether it is something a caller can use."""
    parts = trees_in(item.get("content"))
    said = sum(text_size(part.get("text")) + text_size(part.get("refusal")) for part in parts)
    answer.refused = answer.refused or any(part.get("refusal") for part in parts)
    kind = word(item.get("type")) or ""
    speaks = any(says(part.get("text")) or says(part.get("refusal")) for part in parts)
    if (speaks and kind != "reasoning") or kind.endswith("_call"):
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
        answer.status = "tool_error" if tree_in(tree.get("result")).get("isError") is True else "result"


Read = Callable[[Answer, bytes, Tree], None]

# --- media ---


def read_media(answer: Answer, _name: bytes, tree: Tree) -> None:
    """An answer about images or a video: the work itself, or the id of work that goes on."""
    answer.begun = answer.answered = True
    identifier = tree.get("operation_id")
    if isinstance(identifier, str) and 0 < len(identifier) <= 1024:
        answer.response_id = identifier
    answer.status = word(tree.get("status")) or answer.status
    if "credits" in tree:
        note_credits(answer, tree["credits"])


READERS: Final[Mapping[Family, Read]] = {
    Family.CHAT: read_chat,
    Family.MESSAGES: read_messages,
    Family.RESPONSES: read_responses,
    Family.MCP: read_mcp,
    Family.MEDIA: read_media,
}

_CHOICE_TEXTS: Final = (*_CHAT_TEXTS, *_CHAT_THOUGHTS, "tool_calls.*.function.arguments", "audio.transcript")
_ITEM_TEXTS: Final = ("content.*.text", "content.*.refusal", "arguments", "input", "summary.*.text")

PATHS: Final = Paths.of(
    whole=(
        *("type", "object", "model", "id", "status", "usage", "error", "detail", "code", "message", "credits"),
        "operation_id",
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
