"""A chatbot of the tenant as a model of its own: `chatbot:7` in a chat completion is a call of chatbot 7.

The gateway's chatbots take messages of plain text and nothing else, so what a caller's SDK adds is left out, and what
cannot be said in text is refused.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from proxy.core.body import Facts
from proxy.errors import ProxyError

PREFIX: Final = "chatbot:"
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,17}")
_ROLES: Final[Mapping[str, str]] = {"developer": "system"}
_TEXT_PARTS: Final = frozenset({"text", "input_text"})


def chatbot_of(model: str | None) -> str | None:
    """The chatbot's id in a model name, None for a model. Raises ProxyError for an id that is no number."""
    if model is None or not model.startswith(PREFIX):
        return None
    return checked(model.removeprefix(PREFIX))


def checked(identifier: str) -> str:
    """A chatbot's id, which is a whole number. Raises ProxyError for any other spelling.

    The gateway may read `07` or `+7` as 7, but limits and prices would take it for another chatbot.
    """
    if _NUMBER.fullmatch(identifier) is None:
        raise ProxyError(
            "bad_request", "A chatbot is named by its number as it is written in the gateway, such as 7 or chatbot:7."
        )
    return identifier


def asked_as_chatbot(body: bytes, facts: Facts) -> bytes:
    """The body that a chatbot takes. Raises ProxyError `unsupported_for_chatbot`."""
    if facts.tools or facts.images or facts.files or facts.audio:
        raise ProxyError(
            "unsupported_for_chatbot", "A chatbot takes text messages only; leave out tools, images and files."
        )
    tree = orjson.loads(body)
    messages = tree.get("messages")
    if isinstance(messages, list):
        messages = [_plain(message) for message in messages]
    said = {"messages": messages} if "messages" in tree else {}
    return orjson.dumps(said | ({"stream": tree["stream"]} if "stream" in tree else {}))


def _plain(message: Any) -> Any:
    if not isinstance(message, dict):
        return message  # the gateway says what is wrong with it
    if message.get("tool_calls") or message.get("role") in ("tool", "function"):
        raise ProxyError(
            "unsupported_for_chatbot", "A chatbot takes no tool calls and no tool results in its messages."
        )
    role, content = message.get("role"), message.get("content")
    if isinstance(content, list):
        content = "\n".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and part.get("type") in _TEXT_PARTS and "text" in part
        )
    return {"role": _ROLES.get(role, role) if isinstance(role, str) else role, "content": content}
