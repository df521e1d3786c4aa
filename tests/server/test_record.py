"""What the log takes for harmless without a look, since this code alone makes it."""

import pytest

from proxy.core.charges import WORD
from proxy.observe import log
from proxy.server.pipeline import STAGES
from proxy.units import credit_text

CACHE_WORDS = ("bypass", "miss", "hit", "stale", "collapsed")


@pytest.mark.parametrize(
    "word", [*WORD.values(), *(name for name, _ in STAGES), *CACHE_WORDS, *map(credit_text, (0, 1, -150000000, 10**20))]
)
def test_a_word_of_ours_is_harmless_and_looks_like_one(word):
    assert log._plainness(())(word)
    assert log._OUR_WORD.fullmatch(word)
