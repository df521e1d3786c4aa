"""What the emulated models say: one deterministic reply to one question, whatever format asked it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import orjson

from proxy.emulator.assumptions import REASONING_BUDGET, REASONING_TOKENS
from proxy.emulator.samples import sample
from proxy.emulator.words import Dice, pieces, token_count

ANY_TOOL: Final = "\0any"
"""`Question.forced`: some tool must be called, the first will do."""

CALL_TOKENS: Final = 8
"""Tokens of a tool call besides its arguments."""

_WORDS: Final = re.compile(r"\[\[words:(\d{1,6})]]")
"""A user who writes `[[words:500]]` gets an answer of 500 words."""

_FORMAT: Final = ("stream", "stream_options", "background")
"""Fields that change how an answer is sent, not what it says."""


class Finish(Enum):
    """Why a reply ended."""

    STOP = "stop"
    SEQUENCE = "stop sequence"
    LENGTH = "length"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class Question:
    """What every format boils down to.

    key:       the request in canonical bytes.
    text:      the last words of the user, empty when the last word was not the user's.
    tools:     parameter schema by tool name.
    forced:    name of the tool that must be called, or `ANY_TOOL`.
    schema:    JSON schema the text must fit.
    budget:    most output tokens, reasoning included; None is no bound.
    reasoning: tokens spent on reasoning before the first word.
    starved:   True when a budget below `REASONING_BUDGET` leaves no room for any text.
    """

    key: bytes
    text: str
    tools: Mapping[str, Any]
    forced: str | None = None
    may_call: bool = True
    schema: Any = None
    budget: int | None = None
    stop: tuple[str, ...] = ()
    reasoning: int = 0
    starved: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said. `output` counts all output tokens, reasoning included."""

    pieces: tuple[str, ...]
    call: tuple[str, str] | None
    thoughts: tuple[str, ...]
    reasoning: int
    output: int
    finish: Finish
    sequence: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def canonical(body: Mapping[str, Any]) -> bytes:
    """The request as a key: the same words for the same question, streamed or not."""
    asked = {name: value for name, value in body.items() if name not in _FORMAT}
    return orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)


def reasoning_tokens(effort: str | None) -> int:
    return REASONING_TOKENS.get(effort or "medium", REASONING_TOKENS["medium"])


def is_starved(budget: int | None) -> bool:
    """Whether a reasoning model with this budget thinks until nothing is left to say."""
    return budget is not None and budget < REASONING_BUDGET


def reply_to(question: Question, seed: int, choice: int = 0) -> Reply:
    """The reply; `choice` numbers the alternatives when several are asked for."""
    dice = Dice(seed, choice, question.key.decode())
    if question.starved and question.budget is not None:
        return Reply((), None, (), question.budget, question.budget, Finish.LENGTH)
    thoughts = tuple(pieces(dice, 6)) if question.reasoning else ()
    if tool := _tool(question):
        arguments = orjson.dumps(sample(question.tools[tool] or {"type": "object"}, dice)).decode()
        output = question.reasoning + CALL_TOKENS + token_count(arguments)
        return Reply((), (tool, arguments), thoughts, question.reasoning, output, Finish.TOOLS)
    said = _said(question, dice)
    room = None if question.budget is None else max(0, question.budget - question.reasoning)
    said, finish, sequence = _ended(said, question.stop, room)
    return Reply(tuple(said), None, thoughts, question.reasoning, question.reasoning + len(said), finish, sequence)


def _tool(question: Question) -> str | None:
    """A tool is called when it must be, or when the user names it: an agent's real tools are not run by chance."""
    if question.forced == ANY_TOOL:
        return next(iter(question.tools), None)
    if question.forced:
        return question.forced
    if not question.may_call:
        return None
    named = set(re.findall(r"[\w.-]+", question.text))
    return next((name for name in question.tools if name in named), None)


def _said(question: Question, dice: Dice) -> list[str]:
    if question.schema is not None:
        text = orjson.dumps(sample(question.schema, dice)).decode()
        return [text[start : start + 4] for start in range(0, len(text), 4)]
    wanted = _WORDS.search(question.text)
    return pieces(dice, int(wanted[1]) if wanted else 12 + dice.below(40))


def _ended(said: list[str], stop: tuple[str, ...], room: int | None) -> tuple[list[str], Finish, str | None]:
    """Cut the text at its budget and at the first stop sequence, whichever comes first."""
    finish, sequence = Finish.STOP, None
    if room is not None and len(said) > room:
        said, finish = said[:room], Finish.LENGTH
    text = "".join(said)
    found = [(text.index(word), word) for word in stop if word and word in text]
    if found:
        end, sequence = min(found)
        finish = Finish.SEQUENCE
        kept: list[str] = []
        for piece in said:
            kept.append(piece[: max(0, end)])
            end -= len(piece)
            if end <= 0:
                break
        said = [piece for piece in kept if piece]
    return said, finish, sequence
