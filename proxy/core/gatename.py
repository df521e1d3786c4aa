"""Names of what at the gateway can be left alone: all of it, a member, its tools, a suite, or a model."""

from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """Words of metrics and pages, too."""

    UPSTREAM = "upstream"
    MEMBER = "member"
    TOOLS = "tools"
    SUITE = "suite"
    ROUTE = "route"


QUIET: Final = frozenset({Kind.MEMBER, Kind.TOOLS})
"""What a 429 shuts: part of every day, for seconds, and calls wait.

Their `of` is the digest of a key; who reads of it has no use for that.
"""


class GateName(NamedTuple):
    """Its members are kept apart, since callers invent models: no text of theirs makes it the name of something else.

    of:   whose or which; of a route, the route and the model behind a slash.      team: whose calls alone, "" for all.
    """

    kind: Kind
    of: str = ""
    team: str = ""

    @property
    def words(self) -> str:
        """For people; two names may read alike."""
        if self.kind is Kind.UPSTREAM:
            return self.kind.value
        what = self.of if self.kind is Kind.ROUTE else f"{self.kind.value}:{self.of}"
        return f"{what} of {self.team}" if self.team else what

    @property
    def told(self) -> str:
        """The same without what nobody shall read."""
        return self.kind.value if self.kind in QUIET else self.words


UPSTREAM: Final = GateName(Kind.UPSTREAM)
