"""The tools that suites have listed, as this process has last seen them: definitions, and whose a public name is."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from proxy.core.toollist import Definition, Page, definitions, public_name

SUITES_MAX: Final = 1_000
"""Suites remembered, apart for each gateway key; a gateway lists some dozens."""

TOOLS_MAX: Final = 2_000
"""Tools remembered of one suite."""

FAILED_S: Final = 10.0
"""How long nobody looks in a suite for a name that no list has, after it gave none to somebody of the same team."""


@dataclass(slots=True)
class _Suite:
    """at_s: when the first page was said.      tools: by name, each with the time at which its page was said."""

    at_s: float
    tools: dict[str, tuple[float, Definition]] = field(default_factory=dict)


class Toolbox:
    """Filled by every list that passes, from the gateway or from the cache.

    The cache may have several lists of a suite, and an old one is given again after a newer one came: what was said
    last counts, not what was passed on last. Times are seconds of the wall clock.
    """

    def __init__(self) -> None:
        self._suites: Final[OrderedDict[tuple[str, str], _Suite]] = OrderedDict()
        self._seen: Final[OrderedDict[tuple[str, str], bytes]] = OrderedDict()
        self._named: Final[OrderedDict[str, tuple[str, str]]] = OrderedDict()
        self._hung: Final[dict[tuple[str, str], float]] = {}
        self._failed: Final[dict[tuple[str, str], dict[str, tuple[float, str]]]] = {}

    def is_new(self, credential: str, suite: str, answer: bytes) -> bool:
        """Whether an answer to `tools/list` is another one than the last; it counts as the last one from now on."""
        last = self._seen.get((credential, suite))
        self._seen[credential, suite] = answer
        if len(self._seen) > SUITES_MAX:
            self._seen.popitem(last=False)
        return last != answer or (credential, suite) not in self._suites

    def learn(
        self, credential: str, suite: str, page: Page, *, first: bool, said_s: float, stored: bool
    ) -> Mapping[str, str]:
        """A list has come; the tools in it that no client of the newer revision may be shown, and why, if that is new.

        first:  it begins anew, so what an earlier one said holds no more.
        stored: it was said at `said_s` and comes from the cache; else it is the newest there is.
        """
        self._failed.pop((credential, suite), None)
        before = self._suites.get((credential, suite))
        known = before or _Suite(said_s)
        if first and before is not None:
            if stored and said_s <= before.at_s:
                return {}
            known = _Suite(said_s)
        wrong = {}
        for name, found in definitions(page.tools[:TOOLS_MAX]).items():
            self._named[public_name(suite, name)] = suite, name
            had = None if before is None else before.tools.get(name)
            if not stored or name not in known.tools or said_s > known.tools[name][0]:
                known.tools[name] = said_s, found
                if found.wrong and (had is None or had[1] != found):
                    wrong[name] = found.wrong
        if len(known.tools) <= TOOLS_MAX:
            self._suites[credential, suite] = known
            self._suites.move_to_end((credential, suite))
        if len(self._suites) > SUITES_MAX:
            self._suites.popitem(last=False)
        while len(self._named) > SUITES_MAX * 10:
            self._named.popitem(last=False)
        return wrong

    def definition(self, credential: str, suite: str, tool: str | None) -> Definition | None:
        """What was last said of a tool; None for one that was not listed."""
        known = self._suites.get((credential, suite))
        return None if known is None or tool not in known.tools else known.tools[tool][1]

    def named(self, public: str) -> tuple[str, str] | None:
        """Suite and tool of a public name; None for one that no list had."""
        return self._named.get(public)

    def hangs(self, place: tuple[str, str], until_s: float) -> None:
        """A suite did not list its tools in time, and need not be waited for as long until then.

        place: gateway key and suite.      until_s: of the loop's clock.
        """
        if len(self._hung) >= SUITES_MAX:
            self._hung.clear()
        self._hung[place] = until_s

    def answers(self, place: tuple[str, str]) -> None:
        """A suite has listed its tools in time."""
        self._hung.pop(place, None)

    def fails(self, place: tuple[str, str], team: str, why: str, at_s: float) -> None:
        """A suite was asked for its tools in the name of a team, and gave no list."""
        if len(self._failed) >= SUITES_MAX:
            self._failed.clear()
        self._failed.setdefault(place, {})[team] = at_s, why

    def failed(self, place: tuple[str, str], team: str, now_s: float) -> str:
        """Why a suite gave a team no list a moment ago; "" where it was not asked since, or gave one."""
        at_s, why = self._failed.get(place, {}).get(team, (now_s - FAILED_S, ""))
        return why if abs(now_s - at_s) < FAILED_S else ""

    def hung(self, place: tuple[str, str], now_s: float) -> bool:
        """Whether a suite did not list its tools in time a moment ago."""
        return self._hung.get(place, now_s) > now_s
