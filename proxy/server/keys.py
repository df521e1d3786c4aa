"""Virtual keys issued by command: kept in the ledger, known to the next call as soon as they are there."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from proxy.core.keyring import RANDOM_BYTES, Issued, Keyring, KeyState, key_hash, key_text
from proxy.core.riders import IssueKey, KeptKey, RevokeKey
from proxy.stores.ledger.contract import CannotOpen, LedgerStore

FILE: Final = "key-secret"
"""Name of the file beside the ledger, mode 600, without which no issued key is known any more."""


class KeyTaken(Exception):
    """Another key has the id."""


class Keys:
    """The keys of one proxy. `ring` is replaced whole, so a call sees all of a change or nothing of it."""

    def __init__(self, store: LedgerStore, folder: Path, wall: Callable[[], float]) -> None:
        self._store: Final = store
        self._path: Final = folder / FILE
        self._wall: Final = wall
        self._secret: bytes | None = None
        self.ring = Keyring()

    async def load(self) -> None:
        """Read what was issued; raises CannotOpen where the secret that the keys were kept with is gone."""
        kept = [_issued(one) for one in await self._store.keys()]
        self._secret = _read_secret(self._path)
        if kept and self._secret is None:
            raise CannotOpen(
                f"{self._path} is not there, and virtual keys were issued with it; put it back from a backup, or make "
                "an empty file of that name to begin a new one and issue the keys again"
            )
        self.ring = Keyring(self._secret, kept)

    async def issue(
        self, key_id: str, team: str, *, expires_s: float | None, note: str, account: str = ""
    ) -> tuple[str, Issued]:
        """A new key: its text, which nobody can have again, and what is kept. Raises LedgerUnavailable, KeyTaken.

        account: the id it is counted under, where that is not its own.
        """
        if self._secret is None:
            self._secret = _make_secret(self._path)
        text = key_text(os.urandom(RANDOM_BYTES))
        made = Issued(key_id, team, key_hash(self._secret, text), self._wall(), expires_s, None, note, account)
        await self._store.apply([IssueKey(key_id, team, made.hash.hex(), made.created_s, expires_s, note, account)])
        await self._know()
        if self.ring.issued[key_id].hash != made.hash:
            raise KeyTaken(key_id)
        return text, made

    async def revoke(self, key_id: str, from_s: float) -> Issued:
        """Refuse a key from an instant on. Raises LedgerUnavailable, KeyError for one that is not known."""
        assert key_id in self.ring.issued
        await self._store.apply([RevokeKey(key_id, from_s, self._wall())])
        await self._know()
        return self.ring.issued[key_id]

    def takes(self, one: Issued) -> bool:
        """Whether a key is taken now."""
        return one.state(self._wall()) is KeyState.ACTIVE

    async def _know(self) -> None:
        self.ring = Keyring(self._secret, [_issued(one) for one in await self._store.keys()])


def _issued(kept: KeptKey) -> Issued:
    one = kept.issued
    ends = (one.expires_s, kept.revoked_s)
    return Issued(one.id, one.team, bytes.fromhex(one.hash), one.created_s, *ends, one.note, one.account)


def _read_secret(path: Path) -> bytes | None:
    try:
        text = path.read_text("ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CannotOpen(f"{path} cannot be read ({error})") from error
    if not text:
        return _make_secret(path)
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise CannotOpen(f"{path} does not hold a secret; put it back from a backup") from error


def _make_secret(path: Path) -> bytes:
    secret = os.urandom(32)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(secret.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise CannotOpen(f"{path} cannot be written ({error.strerror}); give another folder with --data") from error
    return secret
