"""What is learned about text: a denser one counts at once, and no figure is above that of `strict`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.learned import BYTES, FROM_BYTES, SURE, Densities
from proxy.core.prices import Price
from proxy.core.pricing import Asked, Estimate, Unit, at_most, ceiling

PRICE = Price(10**8, 10**8)
TEXT = 10_000


def taught(*seen):
    """What is known after answers of so many tokens in `TEXT` bytes."""
    densities = Densities()
    for tokens in seen:
        densities.see("chat", "m", TEXT, tokens, 0.0)
    return densities


def test_a_few_answers_teach_nothing_yet():
    assert taught(*[2000] * (SURE - 1)).of("chat", "m") is None
    assert taught(*[2000] * SURE).of("chat", "m") == 250, "200 tokens in 1,000 bytes, and a quarter for safety"


def test_what_one_route_teaches_another_does_not_know():
    densities = taught(*[2000] * SURE)
    assert (densities.of("native", "m"), densities.of("chat", "other")) == (None, None)


def test_a_denser_text_counts_at_once_and_a_thinner_one_little_by_little():
    densities = taught(*[2000] * SURE)
    densities.see("chat", "m", TEXT, 6400, 0.0)
    assert densities.of("chat", "m") == 800
    densities.see("chat", "m", TEXT, 2000, 0.0)
    assert 700 < densities.of("chat", "m") < 800
    for _ in range(200):
        densities.see("chat", "m", TEXT, 2000, 0.0)
    assert densities.of("chat", "m") == 250


def test_a_short_text_teaches_nothing():
    densities = Densities()
    assert all(densities.see("chat", "m", FROM_BYTES - 1, 200, 0.0) is None for _ in range(20))
    assert densities.answers("chat", "m") == 0


def test_only_what_changed_is_kept():
    densities = taught(*[2000] * SURE)
    assert densities.see("chat", "m", TEXT, 2000, 9.0) is None
    kept = densities.see("chat", "m", TEXT, 3000, 9.0)
    assert (kept.density, kept.answers, kept.at_s) == (300, SURE, 9.0)
    assert Densities([kept]).of("chat", "m") == densities.of("chat", "m") == 375


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**7)), max_size=30),
    st.integers(0, 10**7),
    st.integers(0, 50),
)
def test_no_lesson_changes_a_strict_ceiling_or_goes_above_it(lessons, text_bytes, parts):
    densities = Densities()
    for length, tokens in lessons:
        densities.see("chat", "m", length, tokens, 0.0)
    plain = Asked(Unit.TOKENS, text_bytes, parts, 10)
    known = Asked(Unit.TOKENS, text_bytes, parts, 10, density=densities.of("chat", "m"))
    assert ceiling(known, PRICE, Estimate.STRICT) == ceiling(plain, PRICE, Estimate.STRICT)
    assert ceiling(known, PRICE, Estimate.LEARNED) <= ceiling(plain, PRICE, Estimate.STRICT)
    assert ceiling(known, PRICE, Estimate.BYTES) == ceiling(plain, PRICE, Estimate.BYTES)


@pytest.mark.parametrize(("density", "tokens"), [(None, 5000), (250, 2500), (BYTES, 10_000)])
def test_the_text_is_counted_as_it_was_learned(density, tokens):
    assert at_most(Asked(Unit.TOKENS, TEXT, 0, 1, density=density), PRICE, Estimate.LEARNED)[1] == tokens + 1


def test_a_short_text_is_never_counted_below_two_bytes_a_token():
    """What frames a message weighs more than what it says."""
    assert at_most(Asked(Unit.TOKENS, 20, 0, 1, density=100), PRICE, Estimate.LEARNED)[1] == 10 + 1
