"""The admin API: who may ask, what goes on record, and that a read changes nothing."""

import pytest

from proxy.admin.table import CALLS
from proxy.core.ledger import Adjust
from proxy.core.limits import Budget, Each, Match
from proxy.core.policy import Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.windows import Calendar, Per
from proxy.units import credits_of
from tests.proxies import proxied

CREDIT = 10**8
DAY = Calendar(Per.DAY)
IMAGE = {"model": "image-lab-large", "prompt": "A hill."}
POLICY = Policy(
    {"red": Team("red"), "blue": Team("blue")},
    open_team="red",
    budgets=(
        Budget("all", 500 * CREDIT, DAY),
        Budget("red", 200 * CREDIT, DAY, Match(team="red"), warn_at=(0.5,)),
        Budget("each-key", 300 * CREDIT, DAY, each=Each.KEY),
    ),
    prices=PriceTable((Rule("models", "image-*", Price(per_image=50 * CREDIT)),)),
)


@pytest.fixture
async def front(gateway, tmp_path):
    gateway.set_credits("alpha", 10**6 * CREDIT)
    async with proxied(gateway.url, POLICY, data=str(tmp_path)) as running:
        yield running


async def test_budgets_tell_what_is_spent_held_and_left(front):
    assert (await front.post("/v1/images/generate", IMAGE)).status == 200
    await front.running.parts.books.written()
    _, said = await front.admin("GET", "/api/budgets")
    shown = {
        (one["name"], *account["group"]): (account["spent"], account["held"], account["left"])
        for one in said["budgets"]
        for account in one["accounts"]
    }
    assert shown == {
        ("all",): ("50", "0", "450"),
        ("red",): ("50", "0", "150"),
        ("each-key", "red", "open"): ("50", "0", "250"),
    }
    assert (await front.admin("GET", "/api/budgets/red"))[1]["says"]["amount"] == "200"
    assert await front.admin("GET", "/api/budgets/rde") == (
        404,
        {"error": "there is no budget 'rde'; known are all, red, each-key"},
    )


async def test_a_correction_is_an_entry_and_moves_every_budget_that_counts_it(front):
    asked = {"budget": "red", "credits": "120.5", "reason": "a month by hand", "who": "anna"}
    status, said = await front.admin("POST", "/api/budgets/adjust", asked)
    assert (status, [(one["name"], one["spent"]) for one in said["moved"]]) == (
        200,
        [("all", "120.5"), ("red", "120.5"), ("each-key", "120.5")],
    )
    (entry,) = front.entries
    assert isinstance(entry, Adjust)
    assert (entry.facts.team, entry.credits, entry.reason, entry.who) == (
        "red",
        credits_of("120.5"),
        "a month by hand",
        "anna",
    )
    assert (await front.post("/v1/images/generate", IMAGE)).status == 200
    assert (await front.post("/v1/images/generate", IMAGE)).status == 402
    await front.running.parts.books.written()
    assert (await front.admin("POST", "/api/budgets/adjust", {**asked, "credits": "-70.5"}))[0] == 200
    assert (await front.post("/v1/images/generate", IMAGE)).status == 200


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"reason": " "}, 400, "reason is missing: expected text"),
        ({"reason": "x" * 501}, 400, "the reason is longer than 500 characters"),
        ({"credits": "0"}, 400, "credits: nothing would change"),
        ({"credits": "much"}, 400, "credits: 'much' is not an amount of credits"),
        ({"credits": "-1"}, 409, "only 0 credits are spent of 'all', so 1 cannot be given back"),
        ({"team": "rde"}, 404, "there is no team 'rde'; did you mean red?"),
        ({"budget": "rde"}, 404, "there is no budget 'rde'; did you mean red?"),
        ({"key": "ghost"}, 404, "the team 'red' has no key 'ghost'"),
        ({"budget": "red", "team": "blue"}, 400, "the budget 'red' does not count such calls; say more with "),
        ({"budget": "each-key"}, 400, "the budget 'each-key' has an account for each key; say which one"),
    ],
)
async def test_a_correction_that_cannot_be_is_refused_and_changes_nothing(front, change, status, error):
    asked = {"team": "red", "credits": "1", "reason": "test", **change}
    found, said = await front.admin("POST", "/api/budgets/adjust", asked)
    assert found == status
    assert said["error"].startswith(error)
    assert front.entries == []


async def test_what_changes_something_goes_on_record_whatever_came_of_it(front):
    await front.admin("POST", "/api/budgets/adjust", {"team": "red", "credits": "1", "reason": "why not"})
    await front.admin("POST", "/api/budgets/adjust", {"team": "red"})
    await front.admin("GET", "/api/budgets")
    told = [(event["what"], event["status"], event["who"]) for event in front.audits]
    assert told == [("POST /api/budgets/adjust", 200, "loopback"), ("POST /api/budgets/adjust", 400, "loopback")]
    assert "why not" in front.audits[0]["body"]


@pytest.mark.parametrize("row", CALLS, ids=lambda row: f"{row.method} {row.path}")
async def test_no_web_page_changes_anything_and_reads_change_nothing(front, row):
    path = row.path.format(name="red", id="nobody")
    if row.method == "GET":
        assert not row.changes
        before = front.entries
        assert (await front.admin("GET", path))[0] == 200
        assert front.entries == before
    else:
        assert (await front.admin(row.method, path, {}, {"Origin": "https://elsewhere.example"}))[0] == 403


async def test_the_token_is_asked_for_where_there_is_one(gateway, tmp_path):
    file = tmp_path / "token"
    file.write_text("t-0123456789")
    file.chmod(0o600)
    async with proxied(gateway.url, POLICY, admin_token_file=str(file), data=str(tmp_path)) as front:
        for row in CALLS:
            assert (await front.admin(row.method, row.path.format(name="red", id="x"), {}))[0] == 401
        assert (await front.admin("GET", "/api/budgets", headers={"Authorization": "Bearer t-0123456789"}))[0] == 200


@pytest.mark.parametrize("raw", [b"[]", b"{", b"\xff"])
async def test_a_body_that_is_no_object_is_refused(front, raw):
    url = f"{front.running.admin_url}/api/budgets/adjust"
    async with front.client.post(url, data=raw) as answer:
        assert answer.status == 400


async def test_usage_is_what_the_ledger_says(front):
    for _ in range(2):
        await front.post("/v1/images/generate", IMAGE)
    await front.running.parts.books.written()
    status, said = await front.admin("GET", "/api/usage?by=team,model&since=1d")
    assert (status, said["rows"], said["credits"]) == (
        200,
        [{"team": "red", "model": "image-lab-large", "credits": "100", "tool_calls": 0}],
        "100",
    )
    assert (await front.admin("GET", "/api/usage?by=colour"))[0] == 400
    assert (await front.admin("GET", "/api/usage?since=once"))[0] == 400
    assert (await front.admin("GET", "/api/usage?timezone=Nowhere"))[0] == 400


@pytest.mark.parametrize(
    ("path", "body", "word"),
    [
        ("keys", {"team": "red", "expire": "1d"}, "expire"),
        ("cache/purge", {"path": "/v1", "teams": "red"}, "path"),
        ("budgets/adjust", {"credits": "1", "reason": "x", "kye": "ci"}, "kye"),
        ("ledger/resolve", {"hold": "h", "credit": "1"}, "credit"),
    ],
)
async def test_a_word_that_a_call_does_not_know_is_refused(front, path, body, word):
    """Passed over, a misspelt end of a key would be no end, and a misspelt choice a purge of everything."""
    async with front.client.post(f"{front.running.admin_url}/api/{path}", json=body) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"].startswith(f"{word}: is not known")
