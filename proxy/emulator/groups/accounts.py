"""Who may ask the group service: accounts, their sessions, and access tokens signed the way JWTs are."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from proxy.emulator.groups.records import NORTH, SOUTH


@dataclass(frozen=True, slots=True)
class Account:
    """Who calls. `master` manages every group, other administrators only what is delegated to them."""

    tenant: str
    member_id: int
    active: bool = True
    administrator: bool = True
    master: bool = False


# fmt: off
ACCOUNTS: Final[Mapping[str, Account]] = {
    "master":   Account(NORTH, 101, master=True),
    "delegate": Account(NORTH, 102),
    "member":   Account(NORTH, 103, administrator=False),
    "inactive": Account(NORTH, 104, active=False, master=True),
    "south":    Account(SOUTH, 201, master=True),
}
# fmt: on
SESSIONS: Final[Mapping[str, str]] = {f"emu-session-{name}": name for name in ACCOUNTS}
"""Session ids as the login of an administrator would set them in the cookie `sessionId`."""

EXPIRES_S: Final = 4_102_444_800
"""When tokens end unless told otherwise: with the year 2099, in Unix seconds."""

_SIGNING_KEY: Final = b"emulated-login"


def access_token(name: str, expires_s: int = EXPIRES_S) -> str:
    """What the login API would hand out to this account."""
    head, claims = _part({"alg": "HS256", "typ": "JWT"}), _part({"sub": name, "exp": expires_s})
    return f"{head}.{claims}.{_signature(f'{head}.{claims}')}"


def account_of(token: str, now_s: float) -> Account | None:
    """The account of a token that is ours, whole and not over."""
    signed, _, signature = token.rpartition(".")
    if not hmac.compare_digest(signature.encode(), _signature(signed).encode()):
        return None
    claims = orjson.loads(base64.urlsafe_b64decode(signed.partition(".")[2] + "=="))
    return ACCOUNTS.get(claims["sub"]) if now_s < claims["exp"] else None


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()


def _signature(signed: str) -> str:
    digest = hmac.new(_SIGNING_KEY, signed.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
