"""What a call is about, as far as the books and the limits care."""

from collections.abc import Callable
from typing import Final, NamedTuple

from proxy.core.tuples import maker

# fmt: off
ROUTES: Final = frozenset({
    "models", "model", "chat", "chatbot", "native", "native-count", "native-models", "native-model",
    "responses", "response", "cancel", "speech", "music", "images", "image", "videos", "video", "download",
    "credits", "suites", "mcp",
})
# fmt: on
"""What a call's route can be: the names of those that lead to the gateway (`server/routes`)."""


class Facts(NamedTuple):
    """What an entry is about. Accounts are derived from these under whatever policy is current."""

    team: str
    key: str
    route: str
    model: str | None = None
    suite: str | None = None
    tool: str | None = None
    credential: str = ""
    chatbot: str | None = None

    @property
    def suite_tool(self) -> str | None:
        """`suite.tool`: two suites may have a tool of one name."""
        return None if self.tool is None else f"{self.suite}.{self.tool}"

    def value_of(self, word: str) -> str:
        """What is said under a word that limits tell calls apart by; "" for nothing."""
        value: str | None = self.suite_tool if word == "tool" else getattr(self, word)
        return value or ""


facts_of: Final[Callable[[tuple[str, str, str, str | None, str | None, str | None, str, str | None]], Facts]] = maker(
    Facts
)
"""Facts of all their values, in order."""
