"""Named tuples from their values: half the work of calling their class, for those that every call makes."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def maker(kind: type[T]) -> Callable[[Any], T]:
    """Makes a named tuple of a tuple of all its values, in order and without defaults; nothing counts them.

    Whoever keeps what this returns says of which types the values are, so that a type checker counts them.
    """
    return partial(tuple.__new__, kind)  # type: ignore[type-var]
