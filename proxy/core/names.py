"""How names of models, suites, tools and chatbots are compared: the one place that knows which spellings are one name.

Callers spell them, and whoever reads them at the other end may be lenient. So what forbids, counts and prices a call
takes a name for whatever it could be read as; what allows one takes it as it is spelt.
"""

import re
from fnmatch import translate
from functools import lru_cache
from typing import Final
from unicodedata import normalize

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""What Unicode counts as printable and nobody sees: fillers, joiners, selectors of variants, the blank of braille."""

NAME_MAX: Final = 512
"""Characters of the longest name that is taken. One can come to eighteen plain ones: 25 MB of those take a minute."""


def plain(name: str) -> str:
    """A name without blanks and marks that nobody sees, in its plainest characters: what a lenient server may read."""
    return name if name.isascii() and name.isprintable() and " " not in name else _undressed(name)


@lru_cache(maxsize=1024)
def _undressed(name: str) -> str:
    seen = "".join(one for one in normalize("NFKC", name) if one.isprintable() and not one.isspace())
    # Once more, as what a mark kept apart may be one character now.
    return normalize("NFKC", _UNSEEN.sub("", seen))


def folded(name: str) -> str:
    """What all spellings of one name have in common."""
    return plain(name).casefold()


@lru_cache(maxsize=4096)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern), re.IGNORECASE)


def fits(pattern: str, name: str | None) -> bool:
    """Whether a name fits a glob as it is spelt, without regard to case."""
    return name is not None and _glob(pattern).match(name) is not None


def read_as(pattern: str, name: str | None) -> bool:
    """Whether a name fits a glob as it is spelt, or as a lenient server may read it."""
    if name is None:
        return False
    glob = _glob(pattern)
    return glob.match(name) is not None or ((other := plain(name)) != name and glob.match(other) is not None)


def same(one: str, other: str | None) -> bool:
    """Whether two names may be read as one."""
    return other is not None and (one == other or folded(one) == folded(other))
