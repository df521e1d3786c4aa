"""Virtual keys issued by command: their form, their keyed hash, and who comes with one. Pure.

A key is shown once. What is kept is an HMAC of it, so that whoever reads the books can neither use nor try out keys.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import Final

PREFIX: Final = "sg-"
"""Beginning of every key, for whatever looks for secrets: `sg-[0-9a-f]{48}`."""

RANDOM_BYTES: Final = 24
"""192 bits."""


class KeyState(Enum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Issued:
    """A key as it is kept. Instants are seconds since the epoch, None for never; a revocation may lie ahead.

    account: the id that the books count it under, its own unless it took over from another key.
    """

    id: str
    team: str
    hash: bytes
    created_s: float
    expires_s: float | None = None
    revoked_s: float | None = None
    note: str = ""
    account: str = ""

    def state(self, at_s: float) -> KeyState:
        if self.revoked_s is not None and self.revoked_s <= at_s:
            return KeyState.REVOKED
        if self.expires_s is not None and self.expires_s <= at_s:
            return KeyState.EXPIRED
        return KeyState.ACTIVE

    @property
    def ends_s(self) -> float | None:
        """When it stops being taken."""
        ends = [at_s for at_s in (self.expires_s, self.revoked_s) if at_s is not None]
        return min(ends, default=None)


def key_text(random: bytes) -> str:
    """A key from so many random bytes as `RANDOM_BYTES` says."""
    assert len(random) >= RANDOM_BYTES
    return PREFIX + random.hex()


def key_hash(secret: bytes, key: str) -> bytes:
    """What is kept of a key. secret: of this proxy, beside the books."""
    return hmac.digest(secret, key.encode("utf-8", "surrogatepass"), sha256)


class Keyring:
    """Keys by their hash; a new one replaces this whole."""

    def __init__(self, secret: bytes | None = None, issued: Iterable[Issued] = ()) -> None:
        """secret: None where no key was ever issued."""
        self._secret: Final = secret or bytes(32)
        self.issued: Final = {one.id: one for one in issued}
        self._by_hash: Final = {one.hash: one for one in self.issued.values()}

    def account_of(self, team: str, key_id: str) -> str:
        """The id that the books count a key under: of keys that took over from one another, that of the first."""
        one = self.issued.get(key_id)
        return one.account if one is not None and one.team == team and one.account else key_id

    def find(self, key: str, at_s: float) -> Issued | None:
        """Whose key this is; None for one that is unknown, expired or revoked, with the same work.

        The table is asked by keyed hash, which tells a caller nothing about how near a guess came.
        """
        if not self._by_hash:
            return None
        hashed = key_hash(self._secret, key)
        found = self._by_hash.get(hashed, _NOBODY)
        same = hmac.compare_digest(hashed, found.hash)
        return found if found.state(at_s) is KeyState.ACTIVE and same else None


_NOBODY: Final = Issued("", "", bytes(32), 0.0)
"""Stands in for an unknown key, so that its comparison is made all the same; no key has this hash."""
