"""What makes two calls the same call: a keyed digest over all that can change an answer. Pure.

JSON that differs in order, space or escapes is the same request; a number that differs in any digit is not. The digest
is keyed, so that who reads the file cannot test guesses of what was asked.
"""

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

VERSION: Final = 2
"""Of all that goes into a key; raised when the same call would give another key."""

INDIFFERENT: Final = frozenset({"user", "metadata", "safety_identifier", "prompt_cache_key", "stream"})
"""Members that tell who asks or how the vendor keeps its own cache. `stream` is told apart by the flag."""

_SHAPING: Final = ("-version", "-beta")
"""Ends of the header names that change what an answer looks like."""

_LONG_NUMBER: Final = re.compile(rb"[0-9.]{16,}")
"""A number of so many digits may be rounded by the decoder, and so be equal to another one."""


def canonical(body: bytes) -> bytes:
    """The same bytes for the same request. Raises ValueError for what is no JSON object.

    body: strict JSON, as the judge let it pass.
    """
    exactly = _LONG_NUMBER.search(body) is not None
    tree = json.loads(body, parse_int=_exact, parse_float=_exact) if exactly else orjson.loads(body)
    if not isinstance(tree, dict):
        raise ValueError("no JSON object")
    kept = {name: value for name, value in tree.items() if name not in INDIFFERENT}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)


def _exact(text: str) -> Any:
    """A number that survives the decoder as it is, or its digits under a name that no caller would give."""
    short = len(text.lstrip("-").replace(".", "")) < 16
    return orjson.loads(text) if short else {"\x00number": text}


def key_of(
    secret: bytes,
    *,
    scope: tuple[str, ...],
    route: str,
    target: str,
    headers: Mapping[str, str],
    streamed: bool,
    body: bytes,
    as_it_is: bool = False,
) -> bytes:
    """32 bytes that name a call.

    secret:  64 bytes at most.
    scope:   whose answers these are: team or nobody in particular, credential, gateway.
    target:  path and query as they go to the gateway.
    headers: lower-case names, as they go to the gateway.
    as_it_is: the body is so large that taking it apart would hold up others: only the same bytes are the same request.
    """
    path, _, query = target.partition("?")
    shaping = sorted((name, value) for name, value in headers.items() if name.endswith(_SHAPING))
    parts = [
        VERSION,
        list(scope),
        route,
        path,
        sorted(part for part in query.split("&") if part),
        shaping,
        streamed,
    ]
    # The list is closed before the body begins, so none of its parts can run into it.
    made = blake2b(orjson.dumps(parts), digest_size=32, key=secret)
    made.update(canonical(body) if body and not as_it_is else body)
    return made.digest()
