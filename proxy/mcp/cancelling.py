"""Calls of MCP clients that are under way, and which of them a client may mean when it takes one back.

Without sessions a client is known by its key, its address and its program, and its calls by their ids, which every
client counts from the same number. A word that could mean two calls means none.
"""

from collections import OrderedDict
from typing import Final

import orjson

from proxy.core.policy import credential_of
from proxy.server.call import Call

REMEMBERED_S: Final = 60.0
"""How long an id that has ended may still be meant: clients give up after a minute at most."""

REMEMBERED_MAX: Final = 10_000

Name = tuple[str | None, ...]
"""Team, key, what was shown as a key, gateway key, target, address, program and id.

With the same ones, two calls cannot be told apart. What is shown counts although nobody looks at it with `--auth open`.
"""


class Cancelling:
    """All open calls by name, and the names of those that ended a moment ago."""

    def __init__(self) -> None:
        self._open: Final[dict[Name, dict[str, Call]]] = {}
        self._ended: Final[OrderedDict[Name, float]] = OrderedDict()

    def began(self, call: Call) -> None:
        """A call is under way; to say so twice is no harm."""
        if call.rpc_id is not None:
            self._open.setdefault(_name(call, orjson.dumps(orjson.loads(call.rpc_id))), {})[call.id] = call

    def ended(self, call: Call, now_s: float) -> None:
        """It is over. now_s: seconds of the wall clock."""
        if call.rpc_id is None:
            return
        name = _name(call, orjson.dumps(orjson.loads(call.rpc_id)))
        calls = self._open.get(name, {})
        if calls.pop(call.id, None) is None:
            return
        if not calls:
            del self._open[name]
        self._ended[name] = now_s
        self._ended.move_to_end(name)
        while len(self._ended) > REMEMBERED_MAX:
            self._ended.popitem(last=False)

    def take_back(self, said: Call, now_s: float) -> None:
        """The caller of `said` gives up on a call: one that waits leaves the queue, one that was sent goes on."""
        if said.mcp is None or said.mcp.cancels is None:
            return
        name = _name(said, said.mcp.cancels)
        calls = list(self._open.get(name, {}).values())
        if len(calls) == 1 and abs(now_s - self._ended.get(name, -REMEMBERED_S)) >= REMEMBERED_S:
            (call,) = calls
            if call.source is None:
                call.taken_back = True
                call.inbound.take_back()

    def __len__(self) -> int:
        return sum(len(calls) for calls in self._open.values())


def _name(call: Call, rpc_id: bytes) -> Name:
    assert call.team is not None
    inbound = call.inbound
    target = inbound.target.partition("?")[0].rstrip("/")
    agent = inbound.header("user-agent")
    key = call.head.key if call.head is not None else None
    shown = None if key is None else credential_of(key)
    return call.team.name, call.key_id, shown, call.credential, target, inbound.peer, agent, rpc_id.decode()
