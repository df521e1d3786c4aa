"""Prices: exact, rounded up once, and never less than what was seen."""

from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.answers import Family
from proxy.core.charges import Figures
from proxy.core.prices import FLAT, Price
from proxy.core.pricing import Asked, Unit, at_most, ceiling, metered, paid_input, token_credits
from proxy.core.usage import Usage
from proxy.units import CREDIT

TOKENS = st.integers(0, 10**9)


@given(TOKENS, TOKENS, st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_price_is_the_exact_fraction_rounded_up_per_kind(input_tokens, output_tokens, input_price, output_price):
    price = Price(input_price, output_price)
    exact = [Fraction(input_tokens * input_price, 10**6), Fraction(output_tokens * output_price, 10**6)]
    assert token_credits(input_tokens, output_tokens, price) == sum(ceil(part) for part in exact)


def test_speech_with_a_price_for_output_holds_what_it_may_say():
    asked_for, price = Asked(Unit.SPEECH, text_bytes=4000), Price(250, 1000, output_tokens_max=7000)
    assert at_most(asked_for, price) == (2000 * 250 // 10**6 + 1 + 7, 9000)
    assert ceiling(asked_for, price) == at_most(asked_for, price)[0]
    assert at_most(asked_for, Price(250, 0)) == (1, 2000), "and nothing where output has no price"


def test_one_speech_token_costs_ten_units():
    """0.001 credits per 10,000 tokens, the smallest price there is, is exact."""
    assert token_credits(1, 0, Price(CREDIT // 10, 0)) == 10


@pytest.mark.parametrize(("family", "paid"), [(Family.CHAT, 100), (Family.RESPONSES, 100), (Family.MESSAGES, 190)])
def test_cached_tokens_are_paid_once(family, paid):
    """Chat and Responses count them inside the input, native messages beside it."""
    assert paid_input(Usage(input=100, cache_read=64, cache_write=26), family) == paid


ROWS = [
    # usage                                            bytes  -> gateway, reported, metered
    (Usage(), 0, Figures()),
    (Usage(input=10, output=20, settled=True), 0, Figures(None, 10 * 1000 + 20 * 3000, None)),
    (Usage(input=10, output=1, settled=False), 90, Figures(None, None, 10 * 1000 + 45 * 3000)),
    (Usage(), 90, Figures(None, None, 50 * 1000 + 45 * 3000)),
    (Usage(credits=Decimal("3.25")), 0, Figures(325_000_000, None, None)),
    (Usage(credits=Decimal("0.000000001")), 0, Figures(1, None, None)),
    (Usage(credits=Decimal("1e40")), 0, Figures()),
]


@pytest.mark.parametrize(("usage", "output_bytes", "expected"), ROWS)
def test_what_is_known_of_a_calls_cost(usage, output_bytes, expected):
    assert metered(usage, Family.CHAT, output_bytes, 100, FLAT) == expected


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_running_count_never_makes_a_call_cheaper_than_what_was_seen(output, output_bytes):
    known = metered(Usage(input=1, output=output, settled=False), Family.MESSAGES, output_bytes, 0)
    if output or output_bytes:
        assert known.metered >= token_credits(1, max(output, -(-output_bytes // 2)), FLAT)
    assert known.reported is None
