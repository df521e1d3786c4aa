"""Lists of the server of all suites, made once and given again for as long as every list they were made of holds."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proxy.core.policy import Policy
from proxy.server.cache import Cache
from proxy.stores.cache.contract import Entry

VIEWS_MAX: Final = 200
"""Views kept, one for each key that lists; four hundred tools are some 150 KB, which equal views share."""

Name = tuple[bytes, str, str, bool]
"""Whose view it is: digest of the caller's own gateway key, team, key, and whether it is of the newer revision."""


@dataclass(frozen=True, slots=True)
class Source:
    """One answer that a list was made of.

    entry: of the cache.      ttl_s: how long that is given.
    given: the list was made of this very entry, and not of an answer that was kept only afterwards.
    """

    entry: Entry
    ttl_s: float
    given: bool

    def left_s(self, now_s: float) -> float:
        """How long it is still given. now_s: seconds of the wall clock."""
        return self.ttl_s - (now_s - self.entry.stored_s)


@dataclass(frozen=True, slots=True)
class View:
    """policy: under which it was made.      result: of the JSON-RPC answer.      sources: all that it was made of."""

    policy: Policy
    result: bytes
    sources: Sequence[Source]


class Views:
    """Nothing has to be told here: a view is looked at again whenever it is asked for."""

    def __init__(self) -> None:
        self._views: Final[OrderedDict[Name, View]] = OrderedDict()

    def find(self, name: Name, policy: Policy, cache: Cache, now_s: float) -> tuple[bytes, float] | None:
        """The result and for how many seconds it holds; None where a list, the policy or the time is another one.

        now_s: seconds of the wall clock.
        """
        view = self._views.get(name)
        if view is None:
            return None
        left_s = self._left_s(view, policy, cache, now_s)
        if left_s <= 0:
            del self._views[name]
            return None
        self._views.move_to_end(name)
        return view.result, left_s

    def _left_s(self, view: View, policy: Policy, cache: Cache, now_s: float) -> float:
        if view.policy is not policy:
            return 0.0
        left_s = float("inf")
        for source in view.sources:
            if cache.at_once(source.entry.key) is not source.entry:
                return 0.0
            left_s = min(left_s, source.left_s(now_s))
        return left_s

    def keep(self, name: Name, policy: Policy, result: bytes, sources: Sequence[Source]) -> None:
        """Give this result from now on. sources: not empty, each given."""
        same = next((view.result for view in self._views.values() if view.result == result), result)
        self._views[name] = View(policy, same, sources)
        self._views.move_to_end(name)
        if len(self._views) > VIEWS_MAX:
            self._views.popitem(last=False)

    def __len__(self) -> int:
        return len(self._views)
