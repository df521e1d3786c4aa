"""One call of the admin API, apart from HTTP: what was asked, and how it is refused.

Commands ask the same functions in a process of their own when no proxy runs.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from proxy.config.problem import did_you_mean
from proxy.server.parts import Parts

OURS: Final = "X-Sluicegate"
"""Header line by which commands know an answer of the admin listener from one of whatever else listens there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """values: of the path. query, body: as they came; a body is a JSON object, empty where there is none."""

    values: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A text of the body that must be there. Raises Refused."""
        value = self.body.get(name)
        if not isinstance(value, str) or not value.strip():
            raise Refused(400, f"{name} is missing: expected text")
        return value.strip()

    def text_or_none(self, name: str) -> str | None:
        """A text of the body that may be left out. Raises Refused."""
        return None if self.body.get(name) in (None, "") else self.text(name)


class Refused(Exception):
    """The call is answered with a status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status: Final = status
        self.message: Final = message


Answer = Callable[[Asked, Parts], Awaitable[Any]]
"""The answer as values of JSON. Raises Refused."""


@dataclass(frozen=True, slots=True)
class Row:
    """One call of the table.

    path:    below the admin listener; `{name}` stands for one segment.
    says:    what it is for, for the documentation.
    changes: it goes on record.
    takes:   words its body may have; a misspelt one must not be passed over. None: any.
    """

    method: str
    path: str
    answer: Answer
    says: str
    changes: bool = False
    takes: tuple[str, ...] | None = ()

    def refuse_unknown(self, body: Mapping[str, Any]) -> None:
        """Raises Refused for a word that this call does not know."""
        if self.takes is None:
            return
        for name in body:
            if name not in self.takes:
                raise Refused(400, f"{name}: is not known; {did_you_mean(name, self.takes) or 'take it out'}")

    def values(self, method: str, path: str) -> dict[str, str] | None:
        """Values of a path that is this row's, else None."""
        wanted, have = self.path.split("/"), path.split("/")
        if method != self.method or len(wanted) != len(have):
            return None
        pairs = list(zip(wanted, have, strict=True))
        if any(want != part for want, part in pairs if not want.startswith("{")):
            return None
        return {want.strip("{}"): unquote(part) for want, part in pairs if want.startswith("{")}
