"""Which keys may be stored, in so little memory that those of a large file fit: a Bloom filter.

A key that was added is always found; of those that were not about one in eighty is found too while there are two bytes
for each. What leaves is not taken out, so the filter is made anew from time to time.
"""

from array import array
from struct import Struct
from typing import Final

BYTES_MAX: Final = 16 * 1024 * 1024

KEY_BYTES: Final = 32

_WORD_BYTES: Final = array("I").itemsize

_WORD: Final = Struct("<I28x").unpack
"""A number out of the 32 bytes of a key, which is a digest and so as good as chance."""

_TWO_BITS: Final = tuple([1 << (byte & 15) | 1 << 14 + (byte >> 4) for byte in range(256)])
"""What each byte stands for in a word: two of thirty bits, as numbers of more take the interpreter much longer."""


class Keys:
    """Four bits for each key, all of them in one word."""

    __slots__ = ("_count", "_mask", "_words")

    def __init__(self, fits: int) -> None:
        """fits: for how many keys it is made; more make it wrong more often."""
        size = 1 << max(8, (min(fits // 2, BYTES_MAX // _WORD_BYTES) - 1).bit_length())
        self._words: Final[array[int]] = array("I", bytes(size * _WORD_BYTES))
        self._mask: Final = size - 1
        self._count = 0

    def add(self, key: bytes) -> bool:
        """Find this key from now on; whether it was found before."""
        words = self._words
        self._count += 1
        at = _WORD(key)[0] & self._mask
        bits = _TWO_BITS[key[4]] | _TWO_BITS[key[5]]
        was = words[at]
        if was & bits == bits:
            return True
        words[at] = was | bits
        return False

    @property
    def is_worn(self) -> bool:
        """Whether so many were added that it is wrong too often; most will have left since, or were added twice."""
        return self._count > 4 * len(self._words)

    def __contains__(self, key: bytes) -> bool:
        """False: it was never added."""
        bits = _TWO_BITS[key[4]] | _TWO_BITS[key[5]]
        was: int = self._words[_WORD(key)[0] & self._mask]
        return was & bits == bits
