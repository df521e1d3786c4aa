"""A request that nobody sent: it goes through the stages as one from a connection would, as far as one wants."""

from collections.abc import Callable, Mapping
from typing import Final

from proxy.errors import ProxyError
from proxy.server.inbound import Given


class Imagined(Given):
    """Method, target, header lines and body as given; its caller never leaves."""

    def __init__(self, method: str, target: str, lines: Mapping[str, str], body: bytes) -> None:
        """lines: header lines as a client would send them, Host among them."""
        super().__init__(method, target, {name.lower(): value for name, value in lines.items()})
        self._given: Final = dict(lines)
        self._body: Final = body

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return tuple((name.encode(), value.encode()) for name, value in self._given.items())

    @property
    def http_version(self) -> tuple[int, int]:
        return 1, 1

    @property
    def header_lines(self) -> list[tuple[str, str]]:
        return list(self._given.items())

    def on_gone(self, tell: Callable[[], None]) -> None:
        """Nobody leaves."""

    def take_back(self) -> None:
        """Nobody leaves."""

    def body_here(self, bytes_max: int, too_large: Callable[[], ProxyError]) -> bytes:
        """The whole body; raises ProxyError where it is too large."""
        if len(self._body) > bytes_max:
            raise too_large()
        return self._body
