"""What a suite of the older era says within a call, for a caller of the revision 2026-07-28. Pure.

Before the answer the caller is told of the progress it asked for, by its token, and is given log messages of the level
it asked for. Everything else stays here: questions to the caller, which that revision puts into results, and news of
lists, which belong to subscriptions.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from proxy.core.jsonrpc import Call, scalar, with_id
from proxy.core.newer import LEVELS, lifted
from proxy.core.sse import Event, Kept, Reader, whole, written


class Progress:
    """Takes one stream to another; as long as nothing comes before the answer, nothing comes out.

    began: something came out, so the caller is given a stream.
    """

    def __init__(self, call: Call) -> None:
        """call: what the caller asks."""
        self._call: Final = call
        self._reader: Final = Reader(Kept)
        self._answered = False
        self.began = False

    def feed(self, piece: bytes) -> bytes:
        """What may go on now, in whole events."""
        return self._told(self._reader.feed(piece))

    def close(self) -> bytes:
        """What is left when the stream has ended."""
        return self._told(self._reader.close())

    def _told(self, events: Iterable[Event]) -> bytes:
        return b"".join(self._one(whole(event).data) for event in events)

    def _one(self, data: bytes) -> bytes:
        if self._answered:
            return b""
        try:
            tree = orjson.loads(data)
        except orjson.JSONDecodeError:
            return b""
        if not isinstance(tree, dict):
            return b""
        if "method" in tree:
            if not self._wanted(tree):
                return b""
            self.began = True
            return written(data)
        self._answered = "result" in tree or "error" in tree
        if not self._answered or not self.began:
            return b""
        return written(lifted(with_id(data, self._call.id), self._call.method, 0.0))

    def _wanted(self, message: Mapping[str, Any]) -> bool:
        params = message.get("params")
        if "id" in message or not isinstance(params, dict):
            return False
        if message["method"] == "notifications/progress":
            token = self._call.progress
            return token is not None and scalar(params.get("progressToken")) == token
        least, level = self._call.log_level, params.get("level")
        if message["method"] != "notifications/message" or least not in LEVELS or level not in LEVELS:
            return False
        return LEVELS.index(level) >= LEVELS.index(least)
