"""Idempotency keys of calls that are running."""

from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from proxy.core.idempotency import Recording
from proxy.core.riders import Promise
from proxy.errors import ProxyError


@dataclass(slots=True)
class Promised:
    """A call that holds a key while it runs."""

    scope: str
    key: str
    digest: str
    committed: bool = False  # or may be: it was handed to the ledger
    recording: Recording = field(default_factory=Recording)
    response: web.StreamResponse | None = None

    def promise(self, hold: str, at_s: float) -> Promise:
        """What is committed with the hold."""
        self.committed = True
        return Promise(self.scope, self.key, self.digest, at_s, hold)


class Promises:
    """Keys of calls that are running, with the digest of what each asks."""

    def __init__(self) -> None:
        self._running: Final[dict[tuple[str, str], str]] = {}

    def claim(self, promised: Promised) -> None:
        """Take a key. Raises ProxyError while another call runs with it."""
        name = promised.scope, promised.key
        running = self._running.get(name)
        if running is not None and running != promised.digest:
            raise mismatch()
        if running is not None:
            raise ProxyError(
                "idempotency_running",
                "A call with this Idempotency-Key is still running. Repeat it in a moment to get its answer.",
            )
        self._running[name] = promised.digest

    def done(self, promised: Promised) -> None:
        """Give a key back."""
        del self._running[promised.scope, promised.key]


def mismatch() -> ProxyError:
    """The refusal of a key that came with another request."""
    return ProxyError(
        "idempotency_mismatch",
        "This Idempotency-Key came with another request before. Send the same request, or use a new key.",
    )
