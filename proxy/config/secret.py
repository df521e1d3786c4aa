"""A secret that cannot be printed, logged or pickled by accident, and the reading of one from a file."""

import hmac
import re
import stat
from pathlib import Path
from typing import Final, NoReturn

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")
"""What fits a header line: visible ASCII without spaces."""


class Secret:
    """Holds a key or token. Whoever sends it asks for it by name: `reveal()`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Raises ValueError, without the value in it, for what cannot stand in a header line."""
        if not _TOKEN.fullmatch(value):
            raise ValueError("a secret is one line of visible ASCII characters without spaces")
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __str__(self) -> str:
        # Three characters tell two keys apart for a person; of a short secret they would be too much.
        return f"***{self._value[-3:]}" if len(self._value) >= 12 else "***"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value, other._value)

    __hash__ = None  # type: ignore[assignment]  # a secret is no key of a table; its digest may be

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


def secret_from_file(path: Path) -> tuple[Secret, str | None]:
    """The secret in a file, and a note when others may read the file. Raises ValueError for an unusable file."""
    try:
        mode = path.stat().st_mode
        text = path.read_text("utf-8")
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ValueError("is not text") from error
    if not text.strip():
        raise ValueError("is empty")
    try:
        secret = Secret(text.strip())
    except ValueError as error:
        raise ValueError(f"holds no secret: {error}") from None
    open_to_others = stat.S_IMODE(mode) & 0o077
    return secret, f"{path} can be read by others; chmod 600 {path}" if open_to_others else None
