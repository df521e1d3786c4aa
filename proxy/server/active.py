"""How many requests are being answered, for a drain that waits until none is."""

import asyncio
from typing import Final


class Active:
    """How many requests are being answered."""

    def __init__(self) -> None:
        self._count = 0
        self._none: Final = asyncio.Event()
        self._none.set()

    def came(self) -> None:
        """Count one request in."""
        if not self._count:
            self._none.clear()
        self._count += 1

    def went(self) -> None:
        """Count it out, whatever became of it."""
        self._count -= 1
        if not self._count:
            self._none.set()

    async def none(self) -> None:
        """Wait until nothing is being answered."""
        await self._none.wait()
