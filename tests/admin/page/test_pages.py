"""The pages over HTTP: what each tells, its twin, and that nothing of a caller's becomes markup."""

import base64
import re

import orjson
import pytest

from proxy.admin.page.serve import FILES
from proxy.admin.page.table import VIEWS
from proxy.core.limits import Budget, Each, Match
from proxy.core.policy import Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.windows import Calendar, Per, Sliding
from tests.proxies import CHAT, proxied

CREDIT = 10**8
TOTAL = Calendar(Per.TOTAL)
IMAGE = {"model": "image-lab-large", "prompt": "A hill."}
PATHS = [view.path.replace("{team}", "red") for view in VIEWS]
POLICY = Policy(
    {"blue": Team("blue"), "red": Team("red", deny_models=("gpt-5*",), deny_tools=("*",))},
    open_team="red",
    budgets=(
        Budget("all", 500_000 * CREDIT, TOTAL, source="policies/a.yaml:3:5"),
        Budget("red", 60 * CREDIT, Sliding(86_400.0), Match(team="red"), warn_at=(0.5,), source="policies/a.yaml:4:5"),
        Budget("each-key", 30_000 * CREDIT, TOTAL, each=Each.KEY),
    ),
    prices=PriceTable((Rule("models", "image-*", Price(per_image=50 * CREDIT, source="policies/a.yaml:9:5")),)),
    unpriced_hold=CREDIT,
)


@pytest.fixture
async def front(gateway, tmp_path):
    gateway.set_credits("alpha", 10**6 * CREDIT)
    async with proxied(gateway.url, POLICY, data=str(tmp_path)) as running:
        yield running


async def page(front, path, **headers):
    async with front.client.get(front.running.admin_url + path, headers=headers) as answer:
        return answer.status, answer.headers, await answer.text()


async def twin(front, path):
    return (await front.admin("GET", path))[1]


async def test_every_page_has_a_twin_with_the_same_sentence(front):
    assert (await front.post("/v1/images/generate", IMAGE)).status == 200
    for path in PATHS:
        status, _, shown = await page(front, path)
        linked = re.search(r'href="([^"]+\.json)"', shown)[1]
        assert status == 200, path
        assert f">{(await twin(front, linked))['sentence']}</p>" in shown.replace("&#x27;", "'")
        assert "<h1>" in shown
        assert "None" not in shown


async def test_the_worst_team_is_on_top_and_the_sentence_says_what_is_the_matter(front):
    for _ in range(2):
        await front.post("/v1/images/generate", IMAGE)
    await front.running.parts.books.written()
    said = await twin(front, "/overview.json")
    assert [(team["team"], team["trouble"]) for team in said["teams"]] == [("red", "runs_out"), ("blue", "fine")]
    assert said["sentence"] == "1 of 2 teams runs out of a budget before it reopens."
    assert said["teams"][0]["limit"]["name"] == "red"
    assert said["teams"][0]["refused"] == 1
    assert said["days"]["series"] == [{"name": "red", "credits": [*["0"] * 13, "50"]}]


async def test_a_team_sees_its_limits_the_tightest_first_and_which_one_binds(front):
    await front.post("/v1/images/generate", IMAGE)
    await front.post("/v1/images/generate", IMAGE)
    await front.running.parts.books.written()
    said = await twin(front, "/team/red.json")
    assert [(one["name"], one["left"], one["binding"]) for one in said["limits"]] == [
        ("red", "10", True),
        ("each-key", "29950", False),
        ("all", "499950", False),
    ]
    assert said["sentence"] == "The next call of red meets red first: 10 of 60 credits are left."
    assert said["burn"]["spent"][-1][1] == "50"
    assert said["refused"][0]["why"].startswith("The budget red has 10 of 60 credits left")
    shown = (await page(front, "/team/red"))[2]
    assert "a.yaml:4:5" in shown
    assert shown.count("<strong") == 1


async def test_a_request_is_there_with_the_reason_of_what_was_decided(front):
    await front.post("/v1/chat/completions", {**CHAT, "model": "gpt-5-large"})
    await front.post("/v1/chat/completions", {**CHAT, "temperature": 0})
    await front.post("/v1/chat/completions", {**CHAT, "temperature": 0})
    await front.post("/v1/chat/completions", CHAT)
    await front.until(lambda: len(front.requests) == 4)
    said = await twin(front, "/requests.json")
    assert [(one["status"], one["why"]) for one in said["requests"]] == [
        (200, "Not kept: temperature."),
        (200, "The stored answer, free of charge."),
        (200, ""),
        (403, "The team's policy does not include this model."),
    ]
    refused = await twin(front, "/requests.json?reason=model_not_allowed")
    assert [one["number"] for one in refused["requests"]] == [1]
    assert [one["number"] for one in (await twin(front, "/requests.json?after=3"))["requests"]] == [4]
    assert (await front.admin("GET", "/requests.json?after=x"))[0] == 400


async def test_a_refusal_repeats_nothing_that_a_caller_wrote_in_a_body(front):
    """The caller is told the tool's name; whoever looks on is not."""
    params = {"name": "canary-in-a-body", "arguments": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    reply = await front.post("/v1/mcp/calc", body, headers={"Accept": "application/json, text/event-stream"})
    assert b"canary-in-a-body" in reply.body
    await front.until(lambda: len(front.requests) == 1)
    said = await twin(front, "/requests.json")
    assert said["requests"][0]["reason"] == "tool_not_allowed"
    assert "canary-in-a-body" not in str(said)


async def test_a_model_without_a_price_is_marked(front):
    await front.post("/v1/chat/completions", CHAT)
    await front.post("/v1/images/generate", IMAGE)
    await front.running.parts.books.written()
    said = await twin(front, "/models.json")
    assert [(one["model"], one["priced"]) for one in said["models"]] == [
        ("gpt-4o-mini", False),
        ("image-lab-large", True),
    ]
    assert said["sentence"].startswith("1 of 2 models in use have no price")
    assert "no price</strong>" in (await page(front, "/models"))[2]


async def test_a_model_is_one_row_however_it_was_spelt(front):
    asked = {"budget": "red", "credits": "1", "reason": "by hand"}
    for model in ("image-9", "IMAGE-9", "ｉｍａｇｅ-9"):
        assert (await front.admin("POST", "/api/budgets/adjust", {**asked, "model": model}))[0] == 200
    models = (await twin(front, "/models.json"))["models"]
    assert [(one["model"], one["credits"], one["priced"]) for one in models] == [("IMAGE-9", "3", True)]
    days = (await twin(front, "/team/red.json"))["days"]
    assert days["series"] == [{"name": "IMAGE-9", "credits": [*["0"] * 13, "3"]}]


async def test_the_cache_page_says_what_was_saved(front):
    for _ in range(2):
        await front.post("/v1/chat/completions", {**CHAT, "temperature": 0})
    said = await twin(front, "/cache.json")
    assert said["sentence"].startswith("50% of what may be kept was answered from the cache")
    assert said["stored"]["entries"] == 1


async def test_mistakes_in_policy_files_are_shown_until_they_are_mended(front):
    front.running.parts.state.problems = ("policies/a.yaml:3:5: <b>: is unknown",)
    shown = (await page(front, "/policies"))[2]
    assert "&lt;b&gt;: is unknown" in shown
    assert "have 1 mistake;" in (await twin(front, "/overview.json"))["sentence"]


async def test_names_of_callers_are_text_on_every_page(front):
    """A model's name is whatever a caller writes."""
    evil = "<img src=x onerror=alert(1)>"
    await front.post("/v1/chat/completions", {**CHAT, "model": evil})
    await front.running.parts.books.written()
    for path in (*PATHS, f"/team/{evil}"):
        shown = (await page(front, path))[2]
        assert "<img" not in shown, path


@pytest.mark.parametrize("path", [*PATHS, "/page/style.css", "/page/page.js"])
async def test_pages_run_no_script_but_ours_stand_in_no_frame_and_are_kept_nowhere(front, path):
    _, headers, shown = await page(front, path)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Cache-Control"] == "no-store"
    assert " style=" not in shown
    assert not re.search(r"<script(?! src)|\son[a-z]+=", shown)


async def test_a_team_that_is_not_there_is_said_so(front):
    status, _, shown = await page(front, "/team/nobody")
    assert (status, "there is no team" in shown) == (404, True)
    assert (await front.admin("GET", "/team/nobody.json"))[0] == 404


async def test_the_files_of_the_page_are_there(front):
    for name, kind in FILES.items():
        status, headers, _ = await page(front, f"/page/{name}")
        assert (status, headers["Content-Type"].partition(";")[0]) == (200, kind)


async def test_a_browser_shows_the_token_as_a_password_and_may_only_read(gateway, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length")
    token.chmod(0o600)
    basic = "Basic " + base64.b64encode(b"anna:a-token-of-some-length").decode()
    wrong = "Basic " + base64.b64encode(b"anna:a-token-of-other-length").decode()
    async with proxied(gateway.url, POLICY, admin_token_file=str(token)) as front:
        for path in (*PATHS, "/overview.json", "/page/style.css"):
            status, headers, _ = await page(front, path)
            assert (status, headers["WWW-Authenticate"].partition(" ")[0]) == (401, "Basic"), path
            assert (await page(front, path, Authorization=wrong))[0] == 401
            assert (await page(front, path, Authorization=basic))[0] == 200
        assert (await front.admin("POST", "/api/reload", headers={"Authorization": basic}))[0] == 401
        bearer = {"Authorization": "Bearer a-token-of-some-length"}
        assert (await front.admin("POST", "/api/reload", headers=bearer))[0] == 200


async def test_no_page_takes_anything_but_a_look(front):
    for path in PATHS:
        async with front.client.post(front.running.admin_url + path, data={"x": "y"}) as answer:
            assert answer.status == 405
            assert orjson.loads(await answer.read())["error"] == "Method Not Allowed"
