"""Who may call: fixed keys, the members they belong to, and what the organization above them switched off."""

from collections.abc import Mapping
from typing import Final

from proxy.emulator.answers import refused
from proxy.emulator.messages import BAD_KEY, NO_BEARER, NO_KEY

ORGANIZATION: Final = "org-emu"
"""The tenant all keys belong to."""

KEYS: Final[Mapping[str, str]] = {
    "sk-emu-alpha-1": "alpha",
    "sk-emu-alpha-2": "alpha",
    "sk-emu-beta-1": "beta",
}
"""Key to member: two keys of one member, whom the limits count together, and one of another."""

REVOKED_KEY: Final = "sk-emu-revoked"
"""A key that was valid once; it is answered like any unknown one."""

MEMBERS: Final = tuple(dict.fromkeys(KEYS.values()))


def key_of(authorization: str | None, x_api_key: str | None) -> str:
    """The key of a request; raises the documented 401 for none, a malformed header and an unknown key."""
    if authorization is None and x_api_key is None:
        raise refused(NO_KEY)
    key = x_api_key or ""
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        key = key.strip()
        if scheme.lower() != "bearer" or not key:
            raise refused(NO_BEARER)
    if key not in KEYS:
        raise refused(BAD_KEY)
    return key
