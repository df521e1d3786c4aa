"""HTML as values: whatever is no markup is escaped, so that no name of a caller's becomes a tag."""

from collections.abc import Iterable
from html import escape
from typing import Any, Final

VOID: Final = frozenset({"meta", "link", "input", "br", "rect", "line", "path"})
"""Elements that hold nothing; those of SVG need the slash."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(*children: Any) -> Html:
    """Children one after the other: markup as it is, None as nothing, lists flat, all else escaped."""
    return Html("".join(_parts(children)))


def _parts(children: Iterable[Any]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str | int | float):
            yield escape(str(child))
        else:
            yield from _parts(child)


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """One element. `_` in an attribute's name is `-`, one at its end is left out; None and False leave it out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{written}/>" if name in VOID else f"<{name}{written}>{text(*children)}</{name}>")
