"""Rows that ride in the ledger's file with the entries: they move no credits, and are as durable as their batch. Pure.

All instants are wall-clock seconds since the epoch, unless their name says `boot`: those count from the machine's
start and never step back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from proxy.core.facts import Facts
from proxy.core.operations import Operation
from proxy.core.tuples import maker


class Rider:
    """A step that moves no credits."""

    __slots__ = ()


# --- ids of the gateway's answers ---


@dataclass(frozen=True, slots=True)
class Own(Rider):
    """An id was answered to a team. The first one it was answered to keeps it."""

    id: str
    team: str
    model: str | None
    at_s: float


@dataclass(frozen=True, slots=True)
class Used(Rider):
    """How many tokens the answer that an id names took in and gave out."""

    id: str
    input_tokens: int
    output_tokens: int
    at_s: float


# --- operations ---


@dataclass(frozen=True, slots=True)
class Begin(Rider):
    """Work goes on at the gateway, and keeps its hold."""

    operation: Operation

    @property
    def at_s(self) -> float:
        return self.operation.begun_s


@dataclass(frozen=True, slots=True)
class Finish(Rider):
    """Work has ended; the ending of its hold is a step of its own."""

    id: str
    at_s: float


# --- idempotency ---


@dataclass(frozen=True, slots=True)
class Promise(Rider):
    """A call with an idempotency key is about to be sent; taken only with its hold.

    digest: of what was asked, hexadecimal.      hold: None for a call that holds nothing.
    """

    team: str
    key: str
    digest: str
    at_s: float
    hold: str | None = None


@dataclass(frozen=True, slots=True)
class Keep(Rider):
    """What a promised call was answered; body None when it was too long to keep."""

    team: str
    key: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    at_s: float


@dataclass(frozen=True, slots=True)
class Release(Rider):
    """A promised call cost nothing, so its key may be used again."""

    team: str
    key: str
    at_s: float


# --- virtual keys ---


@dataclass(frozen=True, slots=True)
class IssueKey(Rider):
    """A virtual key issued by command.

    hash: of the key, hexadecimal.      expires_s: None for never.
    account: id of the first key in the row of those it takes over from; "" for one that takes over from none.
    """

    id: str
    team: str
    hash: str
    created_s: float
    expires_s: float | None = None
    note: str = ""
    account: str = ""

    @property
    def at_s(self) -> float:
        return self.created_s


@dataclass(frozen=True, slots=True)
class RevokeKey(Rider):
    """A virtual key is refused from an instant on, which may lie ahead; the earliest one counts."""

    id: str
    revoked_s: float
    at_s: float


# --- turns ---


class _Turn(NamedTuple):
    id: str
    facts: Facts
    reserves: bool
    spends: bool
    tokens: int
    at_s: float
    boot_id: str
    boot_s: float
    hold: str | None = None


class Turn(_Turn, Rider):
    """A place under the rates was taken; with a hold, only when the hold was.

    reserves, spends: what rates match on.      tokens: drawn from limits that count tokens.
    boot_id, boot_s:  which start of the machine, and seconds since it.
    """

    __slots__ = ()


turn_of: Final[Callable[[tuple[str, Facts, bool, bool, int, float, str, float, str | None]], Turn]] = maker(Turn)
"""A turn of all its values, in order."""


class _TurnWritten(NamedTuple):
    id: str
    at_s: float
    boot_s: float


class TurnWritten(_TurnWritten, Rider):
    """The call of a turn has ended, and the gateway had counted it by then or will within the guard.

    at_s, boot_s: the latest instant at which it was counted, which may be a guard ahead; the place is taken until a
    window after that.
    """

    __slots__ = ()


written_of: Final[Callable[[tuple[str, float, float]], TurnWritten]] = maker(TurnWritten)
"""The end of a turn of all its values, in order."""


# --- what was learned ---


@dataclass(frozen=True, slots=True)
class Learned(Rider):
    """How dense text is for a model on a route: the newest word replaces the one before.

    density: tokens in 1,000 bytes of UTF-8, at most 1,000.      answers: how many taught it, counted up to a bound.
    """

    route: str
    model: str
    density: int
    answers: int
    at_s: float


# --- letting go ---


class Shelf(Enum):
    """Tables whose rows are let go when they are old."""

    OWNERS = "owners"
    OPERATIONS = "operations"
    OUTCOMES = "outcomes"
    TURNS = "turns"


@dataclass(frozen=True, slots=True)
class Forget(Rider):
    """Let go of rows older than `at_s`; of operations, those that ended before it.

    A home with a file lets go of some hundreds at a time, so that no batch waits long behind it; ask again for more.
    """

    shelf: Shelf
    at_s: float


# --- what is read back ---


@dataclass(frozen=True, slots=True)
class KeptOwner:
    """An id as it is kept. Tokens are None until the answer said what it used."""

    own: Own
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class KeptOutcome:
    """A promised call as it is kept: still without an outcome while `keep` is None."""

    promise: Promise
    keep: Keep | None = None


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A virtual key as it is kept. revoked_s: None for one that is not."""

    issued: IssueKey
    revoked_s: float | None = None


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A turn as it is kept. written: None when nobody said that its request was written whole."""

    turn: Turn
    written: TurnWritten | None = None
