import pytest

from proxy.core.head import HEADER_BYTES_MAX, HEADERS_MAX, METHODS, TARGET_MAX, Head, gate, host_allowed, origin_allowed
from proxy.errors import ProxyError

HOST = (b"Host", b"127.0.0.1:8787")


def ask(*headers, method="POST", target="/v1/chat/completions", version=(1, 1), host=HOST):
    return gate(method, target, version, [*([host] if host else []), *headers])


def refused(*headers, **line):
    with pytest.raises(ProxyError) as caught:
        ask(*headers, **line)
    return caught.value


# fmt: off
PASSES = (
    ("a plain request",                 {},                                          []),
    ("HTTP/1.0 without Host",           {"version": (1, 0), "host": None},           []),
    ("a name as host",                  {"host": (b"Host", b"proxy_1.internal:80")}, []),
    ("an IPv6 address as host",         {"host": (b"hOST", b"[::1]:8787")},          []),
    ("an encoded slash and colon",      {"target": "/v1/a%2Fb:c?x=%2f&y[]=1&z=a/../b"}, []),
    ("dots that are no segment",        {"target": "/v1/..a/b../.c/gpt-4.1"},        []),
    ("an asterisk with OPTIONS",        {"target": "*", "method": "OPTIONS"},        []),
    ("a length",                        {},                                          [(b"Content-Length", b"12")]),
    ("chunks",                          {},                                          [(b"Transfer-Encoding", b"Chunked")]),
    ("continue",                        {},                                          [(b"Expect", b"100-Continue")]),
    ("identity",                        {},                                          [(b"Content-Encoding", b"identity")]),
    ("a name with an underscore",       {},                                          [(b"x_a.b", b"1")]),
    ("a tab and bytes above ASCII",     {},                                          [(b"X-A", b"a\tb\xe9")]),
    ("a repeatable header twice",       {},                                          [(b"Accept", b"a"), (b"Accept", b"b")]),
    ("as many headers as may be",       {},                                          [(b"A", b"b")] * (HEADERS_MAX - 1)),
    ("one key in both headers",         {},                                          [(b"Authorization", b"Bearer k"), (b"x-api-key", b"k")]),
    ("an empty bearer beside a key",    {},                                          [(b"Authorization", b"Bearer "), (b"x-api-key", b"k")]),
)

REFUSED = (
    # rule                              request line                                 headers                                                      reason
    ("HTTP/0.9",                        {"version": (0, 9)},                         [],                                                          "bad_request"),
    ("HTTP/2.0",                        {"version": (2, 0)},                         [],                                                          "bad_request"),
    ("CONNECT",                         {"method": "CONNECT"},                       [],                                                          "bad_request"),
    ("TRACE",                           {"method": "TRACE"},                         [],                                                          "bad_request"),
    ("a method in lower case",          {"method": "post"},                          [],                                                          "bad_request"),
    ("absolute form",                   {"target": "http://127.0.0.1/v1/x"},         [],                                                          "bad_request"),
    ("an authority in disguise",        {"target": "//evil/v1/x"},                   [],                                                          "bad_request"),
    ("an asterisk without OPTIONS",     {"target": "*"},                             [],                                                          "bad_request"),
    ("no target",                       {"target": ""},                              [],                                                          "bad_request"),
    ("a fragment",                      {"target": "/v1/x#y"},                       [],                                                          "bad_request"),
    ("a backslash",                     {"target": "/v1\\x"},                        [],                                                          "bad_request"),
    ("a space",                         {"target": "/v1/x y"},                       [],                                                          "bad_request"),
    ("a control byte",                  {"target": "/v1/x\x01"},                     [],                                                          "bad_request"),
    ("a byte above ASCII",              {"target": "/v1/\udce9"},                    [],                                                          "bad_request"),
    ("an encoded NUL",                  {"target": "/v1/x%00"},                      [],                                                          "bad_request"),
    ("a bad escape",                    {"target": "/v1/x%2"},                       [],                                                          "bad_request"),
    ("a bad escape in the query",       {"target": "/v1/x?a=%zz"},                   [],                                                          "bad_request"),
    ("a dot segment",                   {"target": "/v1/./x"},                       [],                                                          "bad_request"),
    ("two dots",                        {"target": "/v1/../x"},                      [],                                                          "bad_request"),
    ("two dots at the end",             {"target": "/v1/.."},                        [],                                                          "bad_request"),
    ("encoded dots",                    {"target": "/v1/%2E%2e/x"},                  [],                                                          "bad_request"),
    ("half encoded dots",               {"target": "/v1/.%2e/x"},                    [],                                                          "bad_request"),
    ("dots behind an encoded slash",    {"target": "/v1/a%2F..%2fb"},                [],                                                          "bad_request"),
    ("dots behind encoded backslashes", {"target": "/v1/a%5C..%5cb"},                [],                                                          "bad_request"),
    ("a target too long",               {"target": "/" + "a" * TARGET_MAX},          [],                                                          "headers_too_large"),
    ("no Host",                         {"host": None},                              [],                                                          "bad_request"),
    ("two Hosts",                       {},                                          [HOST],                                                      "bad_request"),
    ("an empty Host",                   {"host": (b"Host", b"")},                    [],                                                          "bad_request"),
    ("a path in Host",                  {"host": (b"Host", b"localhost:80/x")},      [],                                                          "bad_request"),
    ("a user in Host",                  {"host": (b"Host", b"a@localhost")},         [],                                                          "bad_request"),
    ("a fragment in Host",              {"host": (b"Host", b"localhost:4000/#@evil")}, [],                                                        "bad_request"),
    ("a list in Host",                  {"host": (b"Host", b"a,b")},                 [],                                                          "bad_request"),
    ("a port that is none",             {"host": (b"Host", b"a:x")},                 [],                                                          "bad_request"),
    ("two lengths",                     {},                                          [(b"Content-Length", b"1"), (b"content-length", b"1")],      "bad_request"),
    ("a signed length",                 {},                                          [(b"Content-Length", b"+1")],                                "bad_request"),
    ("a length of two",                 {},                                          [(b"Content-Length", b"1,1")],                               "bad_request"),
    ("a length in other digits",        {},                                          [(b"Content-Length", "١".encode())],                         "bad_request"),
    ("an endless length",               {},                                          [(b"Content-Length", b"9" * 19)],                            "bad_request"),
    ("length and chunks",               {},                                          [(b"Content-Length", b"1"), (b"Transfer-Encoding", b"chunked")], "bad_request"),
    ("gzip, chunked",                   {},                                          [(b"Transfer-Encoding", b"gzip, chunked")],                  "bad_request"),
    ("xchunked",                        {},                                          [(b"Transfer-Encoding", b"xchunked")],                       "bad_request"),
    ("identity",                        {},                                          [(b"Transfer-Encoding", b"identity")],                       "bad_request"),
    ("two encodings",                   {},                                          [(b"Transfer-Encoding", b"chunked")] * 2,                    "bad_request"),
    ("chunks on HTTP/1.0",              {"version": (1, 0)},                         [(b"Transfer-Encoding", b"chunked")],                        "bad_request"),
    ("a space in a name",               {},                                          [(b"X A", b"1")],                                            "bad_request"),
    ("a colon in a name",               {},                                          [(b"X:", b"1")],                                             "bad_request"),
    ("an empty name",                   {},                                          [(b"", b"1")],                                               "bad_request"),
    ("a folded line",                   {},                                          [(b"X-A", b"a\r\n b")],                                      "bad_request"),
    ("LF in a value",                   {},                                          [(b"X-A", b"a\nb")],                                         "bad_request"),
    ("NUL in a value",                  {},                                          [(b"X-A", b"a\0b")],                                         "bad_request"),
    ("DEL in a value",                  {},                                          [(b"X-A", b"\x7f")],                                         "bad_request"),
    ("a compressed body",               {},                                          [(b"Content-Encoding", b"gzip")],                            "bad_request"),
    ("an unknown expectation",          {},                                          [(b"Expect", b"the-moon")],                                  "bad_request"),
    ("an upgrade to HTTP/2",            {},                                          [(b"Upgrade", b"h2c")],                                      "bad_request"),
    ("two Authorizations",              {},                                          [(b"Authorization", b"Bearer k")] * 2,                       "bad_request"),
    ("two keys",                        {},                                          [(b"x-api-key", b"k"), (b"X-API-KEY", b"k")],                "bad_request"),
    ("different keys",                  {},                                          [(b"Authorization", b"Bearer k"), (b"x-api-key", b"l")],     "ambiguous_key"),
    ("another scheme beside a key",     {},                                          [(b"Authorization", b"Basic k"), (b"x-api-key", b"k")],      "ambiguous_key"),
    ("a bare credential beside a key",  {},                                          [(b"Authorization", b"k"), (b"x-api-key", b"k")],            "ambiguous_key"),
    ("too many headers",                {},                                          [(b"A", b"b")] * HEADERS_MAX,                                "headers_too_large"),
    ("headers too large",               {},                                          [(b"A", b"b" * HEADER_BYTES_MAX)],                           "headers_too_large"),
)
# fmt: on


@pytest.mark.parametrize(("line", "headers"), [row[1:] for row in PASSES], ids=[row[0] for row in PASSES])
def test_a_head_that_reads_one_way_passes(line, headers):
    assert ask(*headers, **line)


@pytest.mark.parametrize(("line", "headers", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_head_that_could_read_two_ways_is_refused(line, headers, reason):
    assert refused(*headers, **line).reason.name == reason


@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_usual_methods_pass(method):
    assert ask(method=method)


@pytest.mark.parametrize(("line", "headers"), [row[1:3] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_refusal_says_a_sentence_and_repeats_no_value(line, headers):
    canary = [(name, value + b"canary") for name, value in headers]
    messages = [refused(*headers, **line).message]
    for attempt in ((canary, line), (headers, {**line, "target": line.get("target", "/v1/x") + "canary"})):
        try:
            ask(*attempt[0], **attempt[1])
        except ProxyError as caught:
            messages.append(caught.message)
    assert "canary" not in " ".join(messages)
    assert refused(*headers, **line).message.endswith(".")
    assert refused(*headers, **line).message[0].isupper()


# fmt: off
KEYS = (
    ([],                                                        None, False),
    ([(b"Authorization", b"Bearer  k1 ")],                      "k1", False),
    ([(b"authorization", b"bearer k1")],                        "k1", False),
    ([(b"X-Api-Key", b"k1")],                                   "k1", False),
    ([(b"Authorization", b"Bearer k1"), (b"x-api-key", b"k1")], "k1", False),
    ([(b"Authorization", b"Bearer")],                           None, False),
    ([(b"Authorization", b"Basic k1")],                         None, True),
    ([(b"Authorization", b"k1")],                               None, True),
    ([(b"Authorization", b"")],                                 None, False),
    ([(b"Authorization", b"Bearer k\xe9")],                     "k\xe9", False),
)
# fmt: on


@pytest.mark.parametrize(("headers", "key", "other_scheme"), KEYS)
def test_the_key_is_found_in_either_header(headers, key, other_scheme):
    assert ask(*headers) == Head("127.0.0.1:8787", key, other_scheme, websocket=False)


def test_an_upgrade_to_websocket_is_left_to_the_route():
    assert ask((b"Connection", b"Upgrade"), (b"Upgrade", b"WebSocket"), method="GET").websocket


LOCAL = frozenset({"127.0.0.1", "localhost", "::1", "proxy.internal:9000"})

# fmt: off
HOSTS = (
    ("127.0.0.1:8787",        False, True),
    ("LOCALHOST",             False, True),
    ("localhost.:80",         False, True),
    ("[::1]:8787",            False, True),
    ("[::1]",                 False, True),
    (None,                    False, True),
    ("proxy.internal:9000",   False, True),
    ("proxy.internal:9001",   False, False),
    ("proxy.internal",        False, False),
    ("evil.example",          False, False),
    ("localhost.evil.example", False, False),
    ("127.0.0.1.evil.example", False, False),
    ("10.0.0.7:8787",         False, False),
    ("10.0.0.7:8787",         True,  True),
    ("[fe80::1]:8787",        True,  True),
    ("evil.example",          True,  False),
    ("10.0.0.7.evil",         True,  False),
)
ORIGINS = (
    (None,                               True),
    ("null",                             False),
    ("http://localhost:3000",            True),
    ("https://127.0.0.1",                True),
    ("http://[::1]:5173",                True),
    ("https://app.example",              True),
    ("https://APP.example",              True),
    ("http://app.example",               False),
    ("https://app.example:444",          False),
    ("https://app.example.evil",         False),
    ("http://localhost.evil.example",    False),
    ("http://localhost@evil.example",    False),
    ("http://evil.example@localhost",    False),
    ("http://localhost/path",            False),
    ("file://localhost",                 False),
    ("chrome-extension://localhost",     False),
    ("localhost",                        False),
    ("",                                 False),
    ("http://[::1",                      False),
)
# fmt: on


@pytest.mark.parametrize(("host", "any_ip", "allowed"), HOSTS)
def test_only_our_own_names_are_a_host(host, any_ip, allowed):
    assert host_allowed(host, LOCAL, any_ip=any_ip) is allowed


def test_every_host_is_allowed_when_somebody_says_so():
    assert host_allowed("evil.example", frozenset({"*"}))


@pytest.mark.parametrize(("origin", "allowed"), ORIGINS)
def test_only_local_pages_and_those_named_may_call(origin, allowed):
    assert origin_allowed(origin, LOCAL, frozenset({"https://app.example"})) is allowed


def test_a_null_origin_stays_refused_when_all_are_allowed():
    assert origin_allowed("https://any.example", LOCAL, frozenset({"*"}))
    assert not origin_allowed("null", LOCAL, frozenset({"*"}))
