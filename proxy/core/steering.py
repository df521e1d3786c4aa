"""What a caller's `Cache-Control` asks of the cache (RFC 9111, section 5.2.1). Pure."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Steer:
    """no_store: neither look nor keep, nor share a call.      no_cache: do not look, keep the new answer.

    max_age_s:      oldest answer taken, in seconds; None for any that is fresh.
    only_if_cached: fetch nothing.
    """

    no_store: bool = False
    no_cache: bool = False
    max_age_s: int | None = None
    only_if_cached: bool = False


FREE: Final = Steer()
"""A caller that asks for nothing in particular."""


def steer(value: str | None) -> Steer:
    """Read the header; what it does not know, it passes over, as the standard says."""
    if not value:
        return FREE
    said = {name.strip().lower(): given.strip().strip('"') for name, _, given in
            (word.partition("=") for word in value.split(","))}  # fmt: skip
    age = said.get("max-age", "")
    return Steer(
        no_store="no-store" in said,
        no_cache="no-cache" in said,
        max_age_s=int(age) if age.isascii() and age.isdigit() and len(age) < 12 else None,
        only_if_cached="only-if-cached" in said,
    )
