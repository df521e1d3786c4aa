import pytest

from proxy.config import values
from proxy.config.values import Address, BaseUrl


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8787", Address("127.0.0.1", 8787)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:8787", Address("::1", 8787)),
        ("[0:0::1]:1", Address("::1", 1)),
    ],
)
def test_an_address_is_host_and_port(text, expected):
    assert values.address(text) == expected


@pytest.mark.parametrize(
    "text", ["", "8787", ":8787", "127.0.0.1", "h:65536", "h:-1", "h:8x", "h:٣", "::1:80", "a b:1", "h:1:2", 8787]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError):
        values.address(text)


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        ("https://g.example", BaseUrl("https", "g.example", 443), "https://g.example"),
        ("https://G.example:8443/", BaseUrl("https", "g.example", 8443), "https://g.example:8443"),
        ("http://127.0.0.1:9000/a/b/", BaseUrl("http", "127.0.0.1", 9000, "/a/b"), "http://127.0.0.1:9000/a/b"),
        ("http://[::1]:80", BaseUrl("http", "::1", 80), "http://[::1]"),
    ],
)
def test_a_base_url_is_scheme_host_port_and_prefix(text, expected, shown):
    assert values.base_url(text) == expected
    assert str(expected) == shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("g.example", "is not a URL such as"),
        ("ftp://g.example", "is not a URL such as"),
        ("https://", "is not a URL such as"),
        ("https://u:sekret@g.example", "must not hold a user name or password"),
        ("https://sekret@g.example", "must not hold a user name or password"),
        ("https://g.example?key=sekret", "must not hold a query"),
        ("https://g.example#x", "must not hold a query or a fragment"),
        ("https://g.example/v1", "leave out /v1: the proxy adds it"),
        ("https://g.example/x/v1/gateway/", "leave out /v1/gateway: the proxy adds it"),
        ("https://g.example/a//b", "has a path that is not plain"),
        ("https://g.example/%2e", "has a path that is not plain"),
        ("https://g.example:99999", "is not a URL"),
    ],
)
def test_what_is_no_base_url_is_refused_and_a_secret_in_it_not_shown(text, says):
    with pytest.raises(ValueError, match=says) as caught:
        values.base_url(text)
    assert "sekret" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.255.255.254", True),
        ("::1", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host, loopback):
    assert values.is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("read", "written", "expected"),
    [
        (values.duration(0, 100), "1m30s", 90.0),
        (values.duration(0, 100), 5, 5.0),
        (values.size(0, 10**9), "8MiB", 8 * 1024**2),
        (values.size(0, 10**9), 42, 42),
        (values.count(1, 10), "10", 10),
        (values.count(1, 10), 1, 1),
    ],
)
def test_numbers_are_read_with_their_units(read, written, expected):
    assert read(written) == expected


@pytest.mark.parametrize(
    ("read", "written"),
    [
        (values.duration(1, 100), "0.5s"),
        (values.duration(1, 100), "101s"),
        (values.duration(1, 100), True),
        (values.size(1, 100), "101"),
        (values.size(1, 100), "-1"),
        (values.size(1, 100), 1.5),
        (values.count(1, 10), "11"),
        (values.count(1, 10), "0"),
        (values.count(1, 10), "٣"),
        (values.count(1, 10), "1.0"),
        (values.count(1, 10), True),
        (values.segment, "v1"),
        (values.segment, "a/b"),
        (values.segment, "Partner"),
        (values.origin, "https://a.example/path"),
        (values.origin, "null"),
        (values.host, "a.example:80"),
        (values.host, "a/b"),
        (values.text, "  "),
    ],
)
def test_what_is_out_of_bounds_or_no_such_thing_is_refused(read, written):
    with pytest.raises(ValueError):
        read(written)
