"""The tools that suites have listed, as this process has last seen them: definitions, and whose a public name is."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from proxy.core.toollist import Definition, Page, definition, public_name

SUITES_MAX: Final = 1_000
"""Suites remembered, apart for each gateway key; a gateway lists some dozens."""

TOOLS_MAX: Final = 2_000
"""Tools remembered of one suite."""


class Toolbox:
    """Filled by every list that passes, from the gateway or from the cache."""

    def __init__(self) -> None:
        self._suites: Final[OrderedDict[tuple[str, str], dict[str, Definition]]] = OrderedDict()
        self._seen: Final[OrderedDict[tuple[str, str], bytes]] = OrderedDict()
        self._named: Final[OrderedDict[str, tuple[str, str]]] = OrderedDict()

    def is_new(self, credential: str, suite: str, answer: bytes) -> bool:
        """Whether an answer to `tools/list` is another one than the last; it counts as the last one from now on."""
        last = self._seen.get((credential, suite))
        self._seen[credential, suite] = answer
        if len(self._seen) > SUITES_MAX:
            self._seen.popitem(last=False)
        return last != answer

    def learn(self, credential: str, suite: str, page: Page, *, first: bool) -> None:
        """A list has come. first: it begins anew, so what an earlier one said holds no more."""
        known: Mapping[str, Definition] = {} if first else self._suites.get((credential, suite), {})
        found = {tool["name"]: definition(tool) for tool in page.tools[:TOOLS_MAX]}
        tools = {**known, **found}
        if len(tools) <= TOOLS_MAX:
            self._suites[credential, suite] = tools
        self._suites.move_to_end((credential, suite))
        if len(self._suites) > SUITES_MAX:
            self._suites.popitem(last=False)
        for name in found:
            self._named[public_name(suite, name)] = suite, name
        while len(self._named) > SUITES_MAX * 10:
            self._named.popitem(last=False)

    def definition(self, credential: str, suite: str, tool: str | None) -> Definition | None:
        """What was last said of a tool; None for one that was not listed."""
        return self._suites.get((credential, suite), {}).get(tool or "")

    def named(self, public: str) -> tuple[str, str] | None:
        """Suite and tool of a public name; None for one that no list had."""
        return self._named.get(public)
