"""Amounts, durations and sizes: read exactly or refused."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.units import CREDITS_MAX, bytes_of, credit_text, credits_of, instant_text, listed, seconds_of, share_up


@given(st.integers(0, CREDITS_MAX))
def test_an_amount_survives_being_written_and_read(units):
    assert credits_of(credit_text(units)) == units


@given(st.decimals(0, 1000, allow_nan=False, allow_infinity=False, places=12))
def test_an_amount_is_rounded_up_never_down(amount):
    units = credits_of(amount)
    assert Decimal(units) / 10**8 >= amount
    assert Decimal(units - 1) / 10**8 < amount


@pytest.mark.parametrize("text", ["", "x", "-1", "NaN", "Infinity", "1e999999999", "90071992.6", "0x10", None, "1,5"])
def test_what_is_no_amount_is_refused(text):
    with pytest.raises((ValueError, TypeError)):
        credits_of(text)


@pytest.mark.parametrize("value", [1.5, True])
def test_no_float_and_no_truth_value_is_money(value):
    with pytest.raises(TypeError):
        credits_of(value)


@given(st.integers(0, 10**12), st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_share_is_rounded_up(amount, part, whole):
    assert 0 <= share_up(amount, part, whole) * whole - amount * part < whole


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1h30m", 5400), ("500ms", 0.5), ("7d", 604800), (12, 12), ("2.5", 2.5), ("1w", 604800)],
)
def test_durations(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1y", "٣", "٣s", "-1", -1, "1 h x", True, "1h-", float("inf"), float("nan")])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError):
        seconds_of(text)


@pytest.mark.parametrize(("text", "size"), [("26214400", 26_214_400), ("25MiB", 26_214_400), ("8 kB", 8000), (5, 5)])
def test_sizes(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "٣", "1.5MB", "-1", "1TB", True])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError):
        bytes_of(text)


def test_an_instant_is_rounded_up_so_that_nobody_asks_too_early():
    assert instant_text(0.2) == "1970-01-01T00:00:01Z"


def test_words_are_joined_for_a_sentence():
    assert [listed([]), listed(["a"]), listed(["a", "b", "c"])] == ["", "a", "a, b and c"]
