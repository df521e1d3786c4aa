"""What can become of a call of the member-group service, by whose move it is.

GroupsFault
├── Refused             the service answered with a 4xx
│   ├── RuleBroken      400: the request, the tree or a constraint
│   ├── NotLoggedIn     401: no token, or one that is over
│   ├── NotPermitted    403: not an administrator, or a group out of scope
│   ├── NotFound        404: no such group or member
│   ├── Conflict        409: a name that is taken
│   └── Busy            429: not now
└── Unfinished          nothing was decided by the service
    ├── NotSent         no connection came about: nothing happened
    ├── Unanswered      sent, and no whole answer came: it may have happened
    ├── Failing         a 5xx: it may have happened
    └── Unreadable      an answer that is not of the service's form
"""

from collections.abc import Mapping
from typing import Final


class GroupsFault(Exception):
    """message: what went wrong, for a person; never holds the token."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message: Final = message
        self.retry_after_s: Final = retry_after_s


class Refused(GroupsFault):
    status: int = 0


class RuleBroken(Refused):
    status = 400


class NotLoggedIn(Refused):
    status = 401


class NotPermitted(Refused):
    status = 403


class NotFound(Refused):
    status = 404


class Conflict(Refused):
    status = 409


class Busy(Refused):
    status = 429


class Unfinished(GroupsFault):
    pass


class NotSent(Unfinished):
    pass


class Unanswered(Unfinished):
    pass


class Failing(Unfinished):
    pass


class Unreadable(Unfinished):
    pass


_BY_STATUS: Final[Mapping[int, type[Refused]]] = {
    row.status: row for row in (RuleBroken, NotLoggedIn, NotPermitted, NotFound, Conflict, Busy)
}

_ADVICE: Final[Mapping[int, str]] = {
    401: "the token is missing, wrong or over; get a new one from the login",
    403: "the account is inactive, no administrator, or the group is not delegated to it",
}


def fault_of(status: int, sentence: str, retry_after_s: float | None = None) -> GroupsFault:
    """The fault for an answer that is not a success."""
    advice = f" ({_ADVICE[status]})" if status in _ADVICE else ""
    message = f"{status}: {sentence}{advice}"
    if 400 <= status < 500:
        return _BY_STATUS.get(status, Refused)(message, retry_after_s=retry_after_s)
    if 300 <= status < 400:
        return Unreadable(f"{status}: the service answers with a redirect; check --tenant-url")
    return Failing(message, retry_after_s=retry_after_s)
