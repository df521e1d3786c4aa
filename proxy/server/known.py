"""Names that may stand in a metric label: those the gateway has answered well for, up to a bound.

A caller can invent any model id; only one the gateway knows gets a series of its own.
"""

from typing import Final

from proxy.observe.metrics import NOBODY, OTHER

NAMES_MAX: Final = 200
"""Names of one kind; a gateway lists some hundred models."""


class Known:
    """Names of one kind: models, suites or tools."""

    def __init__(self, names_max: int = NAMES_MAX) -> None:
        self._names: Final[set[str]] = set()
        self._names_max: Final = names_max

    def learn(self, name: str | None) -> None:
        """The gateway took this name."""
        if name and len(name) <= 128 and len(self._names) < self._names_max:
            self._names.add(name)

    def label(self, name: str | None) -> str:
        """The name, `_other` for one nobody knows, `_none` for none."""
        if name is None:
            return NOBODY
        return name if name in self._names else OTHER
