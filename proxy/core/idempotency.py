"""What a repeated `Idempotency-Key` leads to, and what is kept of a call that brought one. Pure.

A key belongs to a team for a day. What was answered is kept and given again; what cost nothing lets go of its key, so
that a repeat is a new call; what may have been charged and whose answer nobody has is never sent again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import Final

from proxy.core.charges import Ending
from proxy.core.riders import KeptOutcome

KEPT_S: Final = 86_400.0
"""How long a key is remembered."""

BODY_MAX: Final = 1024 * 1024
"""Largest answer that is kept, in bytes: a long chat is some 100 kB, and all are in the ledger's file for a day."""

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def is_key(text: str) -> bool:
    """Whether a header value can be a key: 1 to 255 visible ASCII characters."""
    return _KEY.fullmatch(text) is not None


def digest_of(target: str, body: bytes) -> str:
    """What makes two calls the same: where they go, and every byte of what they ask. body: its SHA-256."""
    return sha256(target.encode() + b"\0" + body).hexdigest()


class Verdict(Enum):
    """What a call with a key is, by what is known of the key."""

    NEW = "new"
    MISMATCH = "mismatch"
    REPLAY = "replay"
    UNKNOWN = "unknown"  # it was sent, and its outcome is not known
    TOO_LONG = "too_long"  # it was answered, and the answer was too long to keep


def judge(kept: KeptOutcome | None, digest: str, now_s: float) -> Verdict:
    """What a call is whose key is not in use by a running one."""
    if kept is None or now_s - kept.promise.at_s > KEPT_S:
        return Verdict.NEW
    if kept.promise.digest != digest:
        return Verdict.MISMATCH
    if kept.keep is None:
        return Verdict.UNKNOWN
    return Verdict.TOO_LONG if kept.keep.body is None else Verdict.REPLAY


class Fate(Enum):
    """What becomes of a key when its call has ended."""

    KEEP = "keep"
    RELEASE = "release"
    UNKNOWN = "unknown"


_FATES: Final[Mapping[Ending, Fate]] = {
    Ending.HIT: Fate.RELEASE,
    Ending.REFUSED: Fate.RELEASE,
    Ending.NEVER_SENT: Fate.RELEASE,
    Ending.GATEWAY_REFUSED: Fate.RELEASE,
    # Clients repeat what failed with the same key and mean it. A tool may have acted all the same: see below.
    Ending.GATEWAY_FAILED: Fate.RELEASE,
    Ending.ANSWERED: Fate.UNKNOWN,
    Ending.UPSTREAM_BROKE: Fate.UNKNOWN,
    Ending.TIMED_OUT: Fate.UNKNOWN,
    Ending.CALLER_LEFT: Fate.UNKNOWN,
    Ending.PROXY_STOPPED: Fate.UNKNOWN,
}


def fate(ending: Ending | None, *, whole: bool, is_call: bool) -> Fate:
    """What becomes of a key. ending: None for a call that was never admitted. whole: the answer is here to its end."""
    if ending is None:
        return Fate.RELEASE
    if is_call and ending is Ending.GATEWAY_FAILED:
        return Fate.UNKNOWN
    found = _FATES[ending]
    return Fate.KEEP if found is Fate.UNKNOWN and whole else found


@dataclass(slots=True)
class Recording:
    """The bytes of an answer as its caller gets them, up to `BODY_MAX`."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        self.size += len(piece)
        if self.size <= BODY_MAX:
            self.pieces.append(piece)
        else:
            self.pieces.clear()

    @property
    def body(self) -> bytes | None:
        """All of it; None when it is too long to keep."""
        return b"".join(self.pieces) if self.size <= BODY_MAX else None
