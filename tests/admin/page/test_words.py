import pytest

from proxy.admin.page.words import amount, instant, size, span


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ("0", "0"),
        ("1.50000000", "1.5"),
        ("0.00000001", "under 0.0001"),
        ("1234.567", "1,234.57"),
        ("50000", "50,000"),
        (None, "–"),
    ],
)
def test_amounts_are_short_and_never_look_like_nothing_when_they_are_something(exact, shown):
    assert amount(exact) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (59, "59 s"), (3600, "1 h"), (93_784, "1 d 2 h"), (86_460, "1 d"), (61, "1 min 1 s")],
)
def test_spans_are_their_two_largest_units(seconds, shown):
    assert span(seconds) == shown


def test_instants_say_how_far_they_are():
    assert ">in 1 h</time>" in instant("1970-01-01T01:00:00Z", 0.0)
    assert ">1 h ago</time>" in instant("1970-01-01T00:00:00Z", 3600.0)
    assert instant(None, 0.0) == "never"


def test_sizes_are_in_binary_units():
    assert [size(count) for count in (0, 1023, 1536, 3 * 1024**3)] == ["0 B", "1023 B", "1.5 KiB", "3.0 GiB"]
