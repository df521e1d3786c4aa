"""What a call is about, as far as the books and the limits care."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """What an entry is about. Accounts are derived from these under whatever policy is current."""

    team: str
    key: str
    route: str
    model: str | None = None
    suite: str | None = None
    tool: str | None = None
    credential: str = ""
    chatbot: str | None = None
