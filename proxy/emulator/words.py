"""Words out of a digest: the same seed and request always give the same text, tokens and ids."""

import hashlib
from typing import Any, Final

VOCABULARY: Final = (
    "blue", "herons", "wade", "slowly", "past", "the", "old", "mill", "while", "water", "runs", "under", "stones",
    "and", "reeds", "bend", "in", "morning", "light", "물가에", "왜가리", "🪶", "near", "quiet", "locks", "boats",
    "wait", "for", "their", "turn", "at", "gate",
)  # fmt: skip
"""Thirty-two words, so that a byte of a digest picks one evenly; some are long in UTF-8."""


class Dice:
    """An endless, repeatable source of choices."""

    __slots__ = ("_key", "_pool", "_round")

    def __init__(self, *key: object) -> None:
        self._key = "\x1f".join(map(str, key)).encode()
        self._pool = b""
        self._round = 0

    def byte(self) -> int:
        if not self._pool:
            self._pool = hashlib.blake2b(self._key + self._round.to_bytes(8, "big")).digest()
            self._round += 1
        first, self._pool = self._pool[0], self._pool[1:]
        return first

    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1."""
        return (self.byte() << 8 | self.byte()) % bound

    def word(self) -> str:
        return VOCABULARY[self.byte() % len(VOCABULARY)]


def pieces(dice: Dice, count: int) -> list[str]:
    """A text of `count` tokens, as its tokens: a word and the space after it, the last word with a full stop."""
    words = [dice.word() for _ in range(count)]
    if not words:
        return []
    words[0] = words[0].capitalize()
    return [f"{word} " for word in words[:-1]] + [f"{words[-1]}."]


def token_count(text: str) -> int:
    """Tokens of a text: four bytes of UTF-8 are one."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def input_tokens(value: Any) -> int:
    """Tokens of everything textual inside a JSON value; a part that is no text counts as `PART_TOKENS`."""
    if isinstance(value, str):
        return token_count(value)
    if isinstance(value, list):
        return sum(map(input_tokens, value))
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and kind in PARTS:
            return PART_TOKENS
        return sum(input_tokens(inner) for inner in value.values())
    return 0


PARTS: Final = frozenset({"image_url", "image", "input_image", "input_audio", "document", "file", "input_file"})
"""Types of content parts that are not text."""

PART_TOKENS: Final = 256


def last_user_text(messages: Any) -> str:
    """The text of the last message when it is the user's, else nothing: a tool's answer asks for no further call."""
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or last.get("role") != "user":
        return ""
    content = last.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def hex_id(prefix: str, *key: object) -> str:
    """An identifier such as `msg_1f…`, a function of its key."""
    return prefix + hashlib.blake2b("\x1f".join(map(str, key)).encode(), digest_size=12).hexdigest()
