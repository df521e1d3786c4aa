"""What makes two calls the same call: a keyed digest over all that can change an answer. Pure.

JSON that differs in order, space or escapes is the same request; a number that differs in any digit is not. The digest
is keyed, so that who reads the file cannot test guesses of what was asked.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import orjson

VERSION: Final = 3
"""Of all that goes into a key; raised when the same call would give another key, or what was kept may not be given."""

INDIFFERENT: Final = frozenset({"user", "metadata", "safety_identifier", "prompt_cache_key", "stream"})
"""Members that tell who asks or how the vendor keeps its own cache. `stream` is told apart by the flag."""

_SHAPING: Final = ("-version", "-beta")
"""Ends of the header names that change what an answer looks like."""

_DIGITS: Final = bytes(0x30 if byte in b"0123456789." else 0x20 for byte in range(256))
_LONG_NUMBER: Final = b"0" * 16
"""A number of so many digits may be rounded by the decoder, and so be equal to another one.

Making all digits the same and looking for that many in a row takes a tenth of what a regular expression does.
"""

BEGUN_MAX: Final = 256
"""Beginnings of keys that are remembered; a team's calls of one route have the same one."""


_SMALL: Final = re.compile(rb"[eE]-0*(?:[2-9][0-9]{2}|[1-9][0-9]{3})")
"""The exponent of a number so small that the decoder has fewer digits for it, or none."""

_NORMAL: Final = 2.3e-308
"""Numbers from here on have all their digits."""

_NUL: Final = b"\\u0000"
"""The only way to write the sign that the names of ours begin with."""


def may_be_rounded(body: bytes) -> bool:
    """Whether there may be a number in it that the decoder rounds."""
    if body.translate(_DIGITS).find(_LONG_NUMBER) >= 0:
        return True
    # Looking for the two letters is a hundredth of looking for the rest.
    return (body.find(b"e-") >= 0 or body.find(b"E-") >= 0) and _SMALL.search(body) is not None


def canonical(body: bytes, tree: dict[str, Any] | None = None) -> bytes:
    """The same bytes for the same request. Raises ValueError for what is no JSON object.

    body: strict JSON, as the judge let it pass.
    tree: what it was decoded to, where that is known and no number was rounded; it is used up.
    """
    may_have_our_names = body.find(_NUL) >= 0
    if tree is None or may_have_our_names:
        if may_have_our_names or may_be_rounded(body):
            tree = json.loads(body, parse_int=_exact, parse_float=_exact, object_pairs_hook=_named)
        else:
            tree = orjson.loads(body)
    if not isinstance(tree, dict):
        raise ValueError("no JSON object")
    for name in INDIFFERENT:
        tree.pop(name, None)
    return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)


def _exact(text: str) -> Any:
    """A number that survives the decoder as it is, or its digits under a name of ours."""
    value = orjson.loads(text)
    long = len(text.lstrip("-").replace(".", "")) >= 16
    small = isinstance(value, float) and abs(value) < _NORMAL and text.lower().partition("e")[0].strip("-0.") != ""
    return {"\x00number": text} if long or small else value


def _named(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """A caller's object; a name that could be taken for one of ours is told apart from it."""
    return {f"\x00{name}" if name.startswith("\x00") else name: value for name, value in members}


def key_of(
    secret: bytes,
    *,
    scope: tuple[str, ...],
    route: str,
    target: str,
    headers: Mapping[str, str],
    streamed: bool,
    body: bytes,
    tree: dict[str, Any] | None = None,
    as_it_is: bool = False,
) -> bytes:
    """32 bytes that name a call.

    secret:  64 bytes at most.
    scope:   whose answers these are: team or nobody in particular, credential, gateway.
    target:  path and query as they go to the gateway.
    headers: lower-case names, as they go to the gateway.
    tree:    of the body, see `canonical`.
    as_it_is: the body is so large that taking it apart would hold up others: only the same bytes are the same request.
    """
    names = _shaping(tuple(headers))
    shaping = tuple([(name, headers[name]) for name in names]) if names else ()
    made = _begun(secret, (scope, route, target, shaping, streamed)).copy()
    made.update(canonical(body, tree) if body and not as_it_is else body)
    return made.digest()


@lru_cache(maxsize=BEGUN_MAX)
def _shaping(names: tuple[str, ...]) -> tuple[str, ...]:
    """Which of these header lines change what an answer looks like, in the order of their names."""
    return tuple(sorted(name for name in names if name.endswith(_SHAPING)))


_Beginning = tuple[tuple[str, ...], str, str, tuple[tuple[str, str], ...], bool]
"""Scope, route, target, shaping header lines, whether a stream is asked for."""


@lru_cache(maxsize=BEGUN_MAX)
def _begun(secret: bytes, beginning: _Beginning) -> blake2b:
    """The digest before the body, to be copied: nobody may add to this one."""
    scope, route, target, shaping, streamed = beginning
    path, _, query = target.partition("?")
    asked = sorted(part for part in query.split("&") if part)
    # The list is closed before the body begins, so none of its parts can run into it.
    parts = [VERSION, scope, route, path, asked, shaping, streamed]
    return blake2b(orjson.dumps(parts), digest_size=32, key=secret)
