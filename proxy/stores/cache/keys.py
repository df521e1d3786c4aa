"""Which keys may be stored, in so little memory that those of a large file fit: a Bloom filter.

A key that was added is always found; of those that were not about one in forty is found too while there is a byte for
each. What leaves is not taken out, so the filter is made anew from time to time.
"""

from struct import Struct
from typing import Final

BYTES_MAX: Final = 16 * 1024 * 1024

KEY_BYTES: Final = 32

_FOUR: Final = Struct("<4I16x").unpack
"""Four numbers out of the 32 bytes of a key, which is a digest and so as good as chance."""


class Keys:
    """Four bits for each key."""

    __slots__ = ("_bits", "_count", "_mask")

    def __init__(self, fits: int) -> None:
        """fits: for how many keys it is made; more make it wrong more often."""
        size = 1 << max(10, (min(fits, BYTES_MAX) - 1).bit_length())
        self._bits: Final = bytearray(size)
        self._mask: Final = 8 * size - 1
        self._count = 0

    def add(self, key: bytes) -> bool:
        """Find this key from now on; whether it was found before."""
        bits, mask = self._bits, self._mask
        self._count += 1
        was = True
        for number in _FOUR(key):
            at = number & mask
            byte, bit = bits[at >> 3], 1 << (at & 7)
            if not byte & bit:
                was = False
                bits[at >> 3] = byte | bit
        return was

    @property
    def is_worn(self) -> bool:
        """Whether so many were added that it is wrong too often; most will have left since, or were added twice."""
        return self._count > 2 * len(self._bits)

    def __contains__(self, key: bytes) -> bool:
        """False: it was never added."""
        bits, mask = self._bits, self._mask
        for number in _FOUR(key):
            at = number & mask
            if not bits[at >> 3] >> (at & 7) & 1:
                return False
        return True
