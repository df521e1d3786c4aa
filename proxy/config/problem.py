"""A fault in what somebody wrote down: where it stands, what it is, what to do.

Checkers collect these and report them together; none stops at the first.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Problem:
    """where: a flag, an environment variable, or `file:line:col` (lines and columns count from 1)."""

    where: str
    what: str
    do: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"; {self.do}" if self.do else "")


class Problems(Exception):
    """Everything wrong with the settings or the policies, at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What to do about an unknown word: the nearest known one, else the list."""
    words = sorted(known)
    near = get_close_matches(word.replace("-", "_"), words, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(words)}"
