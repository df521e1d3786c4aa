"""Recall: an answer that need not be fetched. So far: identical deterministic calls in flight share one exchange."""

from typing import Final

from proxy.server.call import Call
from proxy.server.exchange import Shared, SharedSource

Key = tuple[str, str, str, bytes]


class InFlight:
    """Shared exchanges that newcomers may still join, by team, credential, target and the body's digest."""

    def __init__(self) -> None:
        self._shared: Final[dict[Key, Shared]] = {}

    def join(self, key: Key) -> SharedSource | None:
        """A reader's view of a running exchange; None when there is none a newcomer would get every byte of."""
        shared = self._shared.get(key)
        return shared.join() if shared is not None and shared.joinable else None

    def add(self, key: Key, shared: Shared) -> None:
        """Offer an exchange to newcomers until it ends."""
        self._shared[key] = shared

        def remove(_: object) -> None:
            if self._shared.get(key) is shared:
                del self._shared[key]

        shared.task.add_done_callback(remove)


def key_of(call: Call) -> Key | None:
    """What makes two calls identical; None for a call that may not be shared.

    Only byte-identical bodies of one team count as identical here.
    """
    if call.facts is None or call.out is None or call.team is None or not call.facts.deterministic:
        return None
    return call.team.name, call.gateway_key or "", call.out.target, call.facts.digest
