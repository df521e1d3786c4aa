"""Routes that answer with sound or film, and what such an answer calls itself."""

from typing import Final

BINARY: Final = frozenset({"speech", "music", "download"})
"""Routes whose answers are no JSON."""

_TYPES: Final = ("audio/", "video/", "application/octet-stream")


def is_media(content_type: str) -> bool:
    """Whether an answer of these routes can be what was asked for; a page or an error that says 200 is none."""
    return content_type.lower().startswith(_TYPES)
