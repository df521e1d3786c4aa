"""Rows and values for a person: columns as wide as their widest cell, nothing that steers a terminal."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width


def columns(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A table as text. right: numbers of columns whose cells end at the same place."""
    from proxy.observe.log import printable

    lines = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(_width(line[at]) for line in lines) for at in range(len(head))]
    ended = frozenset(right)
    return "\n".join(
        "  ".join(_padded(cell, widths[at], end=at in ended) for at, cell in enumerate(line)).rstrip() for line in lines
    )


def _width(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _padded(text: str, width: int, *, end: bool) -> str:
    spare = " " * (width - _width(text))
    return spare + text if end else text + spare


def spoken_words(words: Mapping[str, Any]) -> str:
    """What a rule says, in one line."""
    return ", ".join(f"{name}: {spoken_value(value)}" for name, value in words.items())


def spoken_value(value: Any) -> str:
    """A value as a policy file would have it; "-" for none."""
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
