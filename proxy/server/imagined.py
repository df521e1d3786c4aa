"""A request that nobody sent: it goes through the stages as one from a connection would, as far as one wants."""

from collections.abc import Callable, Mapping
from typing import Final

from proxy.errors import ProxyError
from proxy.server.inbound import Inbound


class Imagined(Inbound):
    """Method, target, header lines and body as given; its caller never leaves."""

    def __init__(self, method: str, target: str, lines: Mapping[str, str], body: bytes) -> None:
        """lines: header lines as a client would send them, Host among them."""
        self._method: Final = method
        self._target: Final = target
        self._given: Final = dict(lines)
        self._body: Final = body
        self._headers = {name.lower(): value for name, value in lines.items()}
        self.body_read, self.sent_whole = True, None

    @property
    def method(self) -> str:
        return self._method

    @property
    def target(self) -> str:
        return self._target

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return tuple((name.encode(), value.encode()) for name, value in self._given.items())

    @property
    def http_version(self) -> tuple[int, int]:
        return 1, 1

    @property
    def header_lines(self) -> list[tuple[str, str]]:
        return list(self._given.items())

    @property
    def gone(self) -> bool:
        return False

    def on_gone(self, tell: Callable[[], None]) -> None:
        """Nobody leaves."""

    @property
    def peer(self) -> str | None:
        return None

    def take_back(self) -> None:
        """Nobody leaves."""

    def finished(self) -> None:
        """There is no connection on which anything could follow."""

    async def body(self, bytes_max: int, too_large: Callable[[], ProxyError]) -> bytes:
        """The whole body; raises ProxyError where it is too large."""
        if len(self._body) > bytes_max:
            raise too_large()
        return self._body
