"""Chatbots of the tenant: a chat without models or tools, which may answer with files and says what it cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from proxy.emulator.answers import (
    Answer,
    Family,
    Refused,
    bad_parameter,
    event,
    event_answer,
    json_answer,
    unprocessable,
)
from proxy.emulator.assumptions import CREATED
from proxy.emulator.content import link
from proxy.emulator.mind import Question, Reply, canonical, reply_to
from proxy.emulator.money import credit_number, units_of
from proxy.emulator.shapes import Field, Shape, problem, read_shaped
from proxy.emulator.words import hex_id, input_tokens, last_user_text
from proxy.emulator.world import Call, World


@dataclass(frozen=True, slots=True)
class Chatbot:
    """`credits` per call; `supported` False is a type the endpoint refuses; `files` True answers with a file."""

    ident: int
    name: str
    credits: str
    supported: bool = True
    files: bool = False


# fmt: off
CHATBOTS: Final[Mapping[int, Chatbot]] = {row.ident: row for row in (
    Chatbot(7, "helpdesk",  "3.25"),
    Chatbot(8, "reporter",  "5", files=True),
    Chatbot(9, "telephone", "0", supported=False),
)}
FIELDS: Final = (
    Field("messages", Shape.ARRAY, required=True, inside=(
        Field("role",    Shape.STRING, required=True, choices=("system", "user", "assistant")),
        Field("content", Shape.STRING, required=True),
    )),
    Field("stream",   Shape.BOOLEAN),
)
# fmt: on

FILE_EXPIRES_S: Final = 3600


def complete(world: World, call: Call) -> Answer:
    ident = _ident(call.parts["chatbot_id"])
    body = read_shaped(call.body, FIELDS)
    if not body["messages"]:
        item = problem(
            "too_short", ("body", "messages"), "List should have at least 1 item after validation, not 0", []
        )
        raise unprocessable([item | {"ctx": {"field_type": "List", "min_length": 1, "actual_length": 0}}])
    bot = CHATBOTS.get(ident)
    if bot is None:
        raise Refused(json_answer({"detail": "Chatbot not found"}, status=404))
    if not bot.supported:
        raise bad_parameter("Unsupported chatbot type")
    world.reserve(call)
    key = f"{ident} {canonical(body).decode()}".encode()
    reply = reply_to(Question(key, last_user_text(body["messages"]), {}), world.options.seed)
    call_id = hex_id("chatcmpl-", world.options.seed, call.body, call.turn)
    base = {"id": call_id, "created": CREATED, "model": bot.name}
    charge = units_of(bot.credits)
    more = {"usage": _usage(body, reply), "credits": credit_number(charge), "files": _files(world, bot, call_id)}
    if body.get("stream") is True:
        return event_answer(_stream(base, reply, more), Family.CHAT, charge=charge)
    message = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    value = {**base, "object": "chat.completion", "choices": [choice], **more}
    return json_answer(value, family=Family.CHAT, charge=charge)


def _stream(base: dict[str, Any], reply: Reply, more: dict[str, Any]) -> Iterator[bytes]:
    """Chunks as on chat; the last one before the end mark carries usage, credits and files."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event({**base, "object": "chat.completion.chunk", "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in reply.pieces:
        yield chunk({"content": piece})
    yield chunk({}, "stop")
    yield event({**base, "object": "chat.completion.chunk", "choices": [], **more})
    yield b"data: [DONE]\n\n"


def _ident(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        sentence = "Input should be a valid integer, unable to parse string as an integer"
        raise unprocessable([problem("int_parsing", ("path", "chatbot_id"), sentence, text)]) from None


def _usage(body: dict[str, Any], reply: Reply) -> dict[str, int]:
    asked = input_tokens(body["messages"]) + 4 * len(body["messages"])
    return {"prompt_tokens": asked, "completion_tokens": reply.output, "total_tokens": asked + reply.output}


def _files(world: World, bot: Chatbot, key: str) -> list[dict[str, Any]]:
    if not bot.files:
        return []
    url = link(world.origin, "txt", key)
    number = int(hex_id("", key)[:6], 16)
    return [{"file_id": number, "filename": "report.txt", "mime_type": "text/plain", "url": url,
             "expires_in": FILE_EXPIRES_S}]  # fmt: skip
