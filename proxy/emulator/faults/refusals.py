"""Faults that answer in place of a room: refusals, error pages, redirects. Nothing is charged for them."""

from collections.abc import Callable
from typing import Final

from proxy.emulator.answers import Answer, json_answer, refusal
from proxy.emulator.assumptions import PAUSE_S
from proxy.emulator.faults.asking import Asked
from proxy.emulator.messages import RATE_LIMIT, SUITE_FAILED, SUITE_PAUSED, TOOL_LIMIT, Message

HTML: Final = b"<!DOCTYPE html><html><head><title>Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"


def says(message: Message) -> Callable[[Asked], Answer]:
    """A refusal of the documentation; `message=` changes its sentence, `retry=` adds a Retry-After."""

    def answer(asked: Asked) -> Answer:
        if text := asked.params.get("message"):
            return json_answer({"detail": text}, status=message.status, headers=asked.retry(None))
        return refusal(message, headers=asked.retry(None), model=asked.model)

    return answer


def rate_limit(asked: Asked) -> Answer:
    if asked.suite:
        return refusal(TOOL_LIMIT, headers=asked.retry("1"), why="30 tools/call per minute for this API key")
    return says(RATE_LIMIT)(asked)


def bad_gateway(asked: Asked) -> Answer:
    if asked.suite:
        return refusal(SUITE_FAILED, headers=asked.retry(None), suite=asked.suite)
    return json_answer({"detail": "Bad Gateway"}, status=502, headers=asked.retry(None))


def paused(asked: Asked) -> Answer:
    seconds = asked.params.get("retry", str(PAUSE_S))
    return refusal(SUITE_PAUSED, headers=asked.retry(str(PAUSE_S)), suite=asked.suite or "calc", n=seconds)


def unprocessable(_asked: Asked) -> Answer:
    item = {"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": {}}
    return json_answer({"detail": [item]}, status=422)


def html(status: int) -> Callable[[Asked], Answer]:
    return lambda asked: Answer(asked.count("status", status), (HTML,), "text/html; charset=utf-8")


def redirect(asked: Asked) -> Answer:
    target = asked.params.get("to", "/v1/gateway/elsewhere/")
    return Answer(asked.count("status", 307), (), headers=(("Location", target),))


def nothing(asked: Asked) -> Answer:
    return Answer(asked.count("status", 200), ())


def any_status(asked: Asked) -> Answer:
    text = asked.params.get("message", "as you wish")
    return json_answer({"detail": text}, status=asked.count("code", 418), headers=asked.retry(None))
