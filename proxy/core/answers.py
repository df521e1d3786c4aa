"""What is known of one answer so far, and how a decoded event adds to it: usage, credits, errors.

Figures are as the vendor reports them: chat and Responses count cached tokens inside `input`, native messages beside
it. What is not on the wire stays None. Nothing here raises: a silly value is as good as an absent one. Which member
means what in which family is in `families`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from proxy.core.jsonscan import Run
from proxy.units import credits_of

TOKENS_MAX: Final = 10**12
"""A larger count of tokens is a fault of its writer and is ignored."""


class Family(Enum):
    """Whose wire format an answer has."""

    __hash__ = object.__hash__  # by identity, which takes no call

    CHAT = "chat"
    MESSAGES = "messages"
    RESPONSES = "responses"
    MCP = "mcp"
    MEDIA = "media"


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
    answered:    something a caller can use has come: text that is not blank, a tool call, a refusal, an image.
    refused:     the model would not answer, or what it said was filtered.
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
    refused: bool = False
    ended: End | None = None
    failure: Failure | None = None
    own_error: bool = False
    settled: bool = False
    sequence: int = -1
    created_at: int = 0
    open_choices: set[int] = field(default_factory=set)


Tree = Mapping[str, Any]
"""A decoded JSON object, whole or pruned to the paths of interest."""


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


def says(value: object) -> bool:
    """Whether there is more in such text than blanks and ends of lines."""
    if isinstance(value, str):
        return bool(value) and not value.isspace()
    if isinstance(value, Run):
        return value.size > 0 and not value.blank
    if isinstance(value, list):
        return any(says(part.get("text")) for part in value if isinstance(part, dict))
    return False


def tree_in(value: object) -> Tree:
    return value if isinstance(value, dict) else {}


def trees_in(value: object) -> list[Tree]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def word(value: object) -> str | None:
    return value[:200] if isinstance(value, str) and value else None


# --- usage ---

Figures = tuple[tuple[str, str, str], ...]
"""Attribute of `Answer`, the member of the usage object that holds it, and the member inside that one, "" for none."""


def note_usage(answer: Answer, usage: object, figures: Figures, *, output_falls: bool = False) -> None:
    """Later figures replace earlier ones one by one; null, absent and silly ones replace nothing.

    output_falls: the first event counts a token of output that a refusal never generates, so a later zero is real.
    """
    if not isinstance(usage, dict) or not usage:
        return
    for attribute, member, inner in figures:
        count = usage.get(member)
        if inner and count is not None:
            count = count.get(inner) if isinstance(count, dict) else None
        if type(count) is not int or not 0 <= count <= TOKENS_MAX:
            continue
        # Relays fill absent usage with zeros, so a zero says less than any figure before it.
        if not count and getattr(answer, attribute) is not None:
            may_fall = output_falls and attribute == "output" and not answer.text_bytes
            if not may_fall:
                continue
        setattr(answer, attribute, count)


def note_credits(answer: Answer, value: object) -> None:
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
        return Failure("; ".join(text for text in said if isinstance(text, str)) or "unknown error")
    if not isinstance(value, dict):
        return Failure(value[:4096] if isinstance(value, str) and value else "unknown error")
    message = value.get("message") or value.get("detail")
    code = value.get("code")
    return Failure(
        message[:4096] if isinstance(message, str) else "unknown error",
        word(value.get("type")) if value.get("type") != "error" else None,  # "error" only says that it is one
        str(code) if type(code) is int else word(code),
    )


def note_failure(answer: Answer, value: object, *, own: bool) -> None:
    answer.failure = answer.failure or failure_of(value)
    answer.own_error = answer.own_error or own


def note_stray_error(answer: Answer, tree: Tree) -> None:
    """An error in none of the family's forms: its SDKs would not see it."""
    if tree.get("detail"):
        note_failure(answer, tree["detail"], own=False)
    elif tree.get("error"):
        note_failure(answer, tree["error"], own=False)
    elif "error" in (tree.get("type"), tree.get("object")):
        note_failure(answer, tree, own=False)
