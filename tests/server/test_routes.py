"""The table of routes in every spelling, and what it refuses."""

import pytest

from proxy.server.routes import ROUTES, Unmatched, allowed_methods, match, upstream_target

SAMPLES = {"model": "vendor%2Fgpt%20x", "id": "resp_a%3Ab", "suite": "calc"}
LONG_ID = "models/veo/operations/a%3Ab:c"


def sample(path):
    return path.replace("{id+}", LONG_ID).format(**SAMPLES)


def found(method, target, *, native=False, segment="partner"):
    return match(method, target, segment=segment, native_header=native)


@pytest.mark.parametrize("route", [row for row in ROUTES if row.upstream], ids=lambda row: row.name)
@pytest.mark.parametrize("prefix", ["/v1", "/v1/gateway", ""])
@pytest.mark.parametrize("slash", ["", "/"])
def test_each_row_answers_in_every_spelling_and_goes_up_in_the_gateways_form(route, prefix, slash):
    path = sample(route.path)
    got = found(route.method, f"{prefix}/{path}{slash}?a=%2f", native=route.name.startswith("native"))
    assert got.route is route
    long = {"id": LONG_ID} if "{id+}" in route.path else {}
    expected = "/v1/gateway/" + route.upstream.format(segment="partner", **SAMPLES | long)
    assert upstream_target(got, segment="partner") == f"{expected}?a=%2f"


@pytest.mark.parametrize("prefix", ["", "/v1", "/v1/gateway"])
@pytest.mark.parametrize("segment", ["/partner", "/anthropic", "/acme"])
@pytest.mark.parametrize("version", ["", "/v1", "/v1/v1"])
@pytest.mark.parametrize(("path", "name"), [("messages", "native"), ("messages/count_tokens", "native-count")])
def test_native_routes_answer_under_the_segment_and_its_known_names(prefix, segment, version, path, name):
    got = found("POST", f"{prefix}{segment}{version}/{path}", segment="acme")
    assert got.route.name == name
    assert upstream_target(got, segment="acme") == f"/v1/gateway/acme/v1/{path}/"


# fmt: off
ROWS = [
    # method  target                            native  leads to
    ("GET",  "/v1/models",                      False, "models"),
    ("GET",  "/v1/models",                      True,  "native-models"),
    ("GET",  "/v1/models/a",                    True,  "native-model"),
    ("GET",  "/partner/v1/models",              False, "native-models"),
    ("POST", "/v1/v1/messages",                 False, "native"),
    ("GET",  "/",                               False, "root"),
    ("HEAD", "/",                               False, "root"),
    ("GET",  "/v1/mcp",                         False, "suites"),
    ("POST", "/v1/mcp",                         False, "merged"),
    ("GET",  "/v1/mcp/calc",                    False, Unmatched.METHOD),
    ("DELETE", "/v1/mcp/calc",                  False, Unmatched.METHOD),
    ("GET",  "/v1/chat/completions",            False, Unmatched.METHOD),
    ("POST", "/v1/responses/input_tokens",      False, Unmatched.PATH),
    ("POST", "/v1/embeddings",                  False, Unmatched.PATH),
    ("POST", "/v1/messages/batches",            False, Unmatched.PATH),
    ("GET",  "/v1/files",                       False, Unmatched.PATH),
    ("POST", "/v1/gateway/partner/v1/chat/completions", False, Unmatched.PATH),
    ("POST", "/v2/chat/completions",            False, Unmatched.PATH),
    ("POST", "/gateway/chat/completions",       False, Unmatched.PATH),
    ("POST", "/v1//chat/completions",           False, Unmatched.PATH),
    ("POST", "/V1/chat/completions",            False, Unmatched.PATH),
    ("GET",  "/v1/models/a/b",                  False, Unmatched.PATH),
    ("GET",  "/v1/models/",                     False, "models"),
    ("GET",  "/v1/responses//cancel",           False, Unmatched.PATH),
    ("GET",  "/v1/video/generation/a/b:c/download", False, "download"),
    ("GET",  "/v1/video/generation/a/b:c",      False, "video"),
    ("GET",  "/v1/video/generation/download",   False, "video"),
    ("GET",  "/v1/video/generation",            False, Unmatched.METHOD),
    ("GET",  "/v1/images/generate/a/b/",        False, "image"),
    ("GET",  "/v1/images/generations/a",        False, Unmatched.PATH),
    ("POST", "/v1/chatbots/7/chat/completions", False, "chatbot"),
]
# fmt: on


@pytest.mark.parametrize(("method", "target", "native", "leads"), ROWS)
def test_where_a_target_leads(method, target, native, leads):
    got = found(method, target, native=native)
    assert (got if isinstance(got, Unmatched) else got.route.name) == leads


@pytest.mark.parametrize(
    ("target", "methods"),
    [("/v1/mcp/calc", ("POST",)), ("/v1/models", ("GET",)), ("/", ("GET", "HEAD")), ("/v1/nowhere", ())],
)
def test_allow_names_the_methods_of_a_path(target, methods):
    assert allowed_methods(target, segment="partner") == methods


def test_names_are_unique_and_every_route_that_spends_reaches_the_gateway():
    assert len({(row.method, row.path, row.native) for row in ROUTES}) == len(ROUTES)
    assert all(row.upstream for row in ROUTES if row.spends)
    assert all(row.keyed for row in ROUTES if row.upstream)
