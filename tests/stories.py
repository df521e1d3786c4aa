"""Reads stories: tables of text, one row a step, with what must be true after it.

    # step     hold  amount | held spent  says
    hold       h1        60 |   60     0  ok

A line that begins with `#` names the columns. Columns right of `|` are expectations. A failing row prints itself.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def rows(story: str) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, str]]]:
    """Each row as (its text, what goes in, what must come out)."""
    given: list[str] = []
    expected: list[str] = []
    for line in story.splitlines():
        text = line.strip()
        if not text:
            continue
        left, _, right = text.lstrip("#").partition("|")
        if text.startswith("#"):
            given, expected = left.split(), right.split()
        else:
            yield text, dict(zip(given, left.split(), strict=True)), dict(zip(expected, right.split(), strict=True))


def play(story: str, step: Callable[[Mapping[str, str]], Mapping[str, Any]]) -> None:
    """Run each row through `step`, which says what is true afterwards."""
    count = 0
    for text, given, expected in rows(story):
        seen = {name: str(value) for name, value in step(given).items() if name in expected}
        assert seen == expected, f"row: {text}\nseen: {seen}"
        count += 1
    assert count, "a story without rows proves nothing"
