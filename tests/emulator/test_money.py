from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.emulator.money import credit_number, credit_text, units_of


@pytest.mark.parametrize(
    ("units", "text"),
    [(0, "0"), (1, "0.00000001"), (150_000_000, "1.5"), (-150_000_000, "-1.5"), (10**11, "1000")],
)
def test_an_amount_is_written_without_needless_zeros(units, text):
    assert credit_text(units) == text


@given(st.integers(-(10**18), 10**18))
def test_an_amount_is_read_as_it_was_written(units):
    assert units_of(credit_text(units)) == units
    assert Decimal(orjson.dumps(credit_number(units)).decode()) * 10**8 == units


def test_what_is_finer_than_a_unit_is_no_amount():
    with pytest.raises(ValueError, match="finer"):
        units_of("0.000000001")
