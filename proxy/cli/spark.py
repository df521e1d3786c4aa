"""A line of figures as a line of blocks."""

from collections.abc import Sequence
from typing import Final

BLOCKS: Final = "▁▂▃▄▅▆▇█"


def spark(values: Sequence[float]) -> str:
    """One block for each value, the highest full; a blank for nothing at all."""
    most = max(values, default=0.0)
    return "".join(" " if value <= 0 else BLOCKS[max(0, int(value / most * len(BLOCKS)) - 1)] for value in values)


def bar(share: float, width: int = 12) -> str:
    """How much of something is used."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return "█" * full + "░" * (width - full)
