"""News reach a webhook: once, signed, after failures and restarts too, and never with what callers wrote."""

import asyncio
import hmac
from contextlib import asynccontextmanager
from hashlib import sha256

import orjson
import pytest
from aiohttp import web

from proxy.admin.alerts import message, watch
from proxy.config.problem import Problems
from proxy.config.settings import AlertFormat
from proxy.config.sources import load
from proxy.core.gatename import GateName, Kind
from proxy.core.limits import Budget, Each
from proxy.core.policy import Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.reconciliation import Reading, Span
from proxy.core.windows import Calendar, Per
from proxy.observe.news import News, Newsroom
from proxy.server import reload, warnings
from proxy.stores.newsfile import NewsFile
from tests.proxies import CHAT, proxied

CREDIT = 10**8
IMAGE = {"model": "image-lab-large", "prompt": "canary-prompt-text"}
SECRET = "a-secret-to-sign-with"
POLICY = Policy(
    {"red": Team("red")},
    open_team="red",
    budgets=(Budget("month", 110 * CREDIT, Calendar(Per.MONTH), each=Each.TEAM, warn_at=(0.4, 0.8)),),
    prices=PriceTable((Rule("models", "image-*", Price(per_image=50 * CREDIT)),)),
)


class Hook:
    """A receiver. status: what it answers; bodies: what it took."""

    def __init__(self):
        self.status = 200
        self.asked = 0
        self.led_away = 0
        self.url = ""
        self.taken = []
        self.bell = asyncio.Event()

    async def handle(self, request):
        body = await request.read()
        self.asked += 1
        if self.status == 200:
            self.taken.append((request.headers, body))
        self.bell.set()
        return web.Response(status=self.status, headers={"Location": "/elsewhere"} if self.status == 307 else {})

    async def elsewhere(self, _):
        self.led_away += 1
        return web.Response()

    @property
    def kinds(self):
        return [orjson.loads(body)["kind"] for _, body in self.taken]

    async def until(self, holds):
        async with asyncio.timeout(60):
            while not holds():
                self.bell.clear()
                await self.bell.wait()


@asynccontextmanager
async def hooked():
    hook = Hook()
    app = web.Application()
    app.router.add_route("*", "/hooks/{secret}", hook.handle)
    app.router.add_route("*", "/elsewhere", hook.elsewhere)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    hook.url = f"http://127.0.0.1:{site.port}/hooks/address-that-is-secret"
    try:
        yield hook
    finally:
        await runner.cleanup()


@pytest.fixture
async def hook():
    async with hooked() as one:
        yield one


@pytest.fixture
def flags(hook, tmp_path):
    """Options of a proxy that tells the hook."""
    for name, text in (("url", hook.url), ("secret", SECRET)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    return {
        "alert_url_file": str(tmp_path / "url"),
        "alert_secret_file": str(tmp_path / "secret"),
        "data": str(tmp_path / "data"),
    }


async def test_each_thing_worth_knowing_is_told_once(gateway, hook, flags, tmp_path):
    gateway.set_credits("alpha", 10**6 * CREDIT)
    policies = tmp_path / "policies"
    policies.mkdir()
    async with proxied(gateway.url, POLICY, policies=str(policies), **flags) as front:
        parts = front.running.parts
        for _ in range(4):
            await front.post("/v1/images/generate", IMAGE)
        await parts.books.written()
        (policies / "a.yaml").write_text("nonsense: [1]")
        await reload.reload(parts)
        warnings.drift(Span(Reading(0, 100, 0, 0), Reading(1, 50, 0, 0)), parts)
        parts.queue.scheduler.gates.break_(GateName(Kind.SUITE, "calc"), parts.queue.now_s() + 60)
        parts.queue.scheduler.gates.pause(GateName(Kind.MEMBER, "x"), parts.queue.now_s() + 60)
        parts.state.key_refused = True
        await hook.until(lambda: len(hook.taken) >= 7)
        assert sorted(hook.kinds) == [
            "breaker_open",
            "budget_exhausted",
            "budget_warning",
            "budget_warning",
            "gateway_key_refused",
            "ledger_drift",
            "policy_refused",
        ]
        warned = next(orjson.loads(body) for _, body in hook.taken if b'"budget_warning"' in body)
        assert warned["text"] == "The budget month of red came to 40%: 50 of 110 credits are spent."
        assert warned["about"] == {"budget": "month", "group": "red", "share": "0.4", "spent": "50", "credits": "110"}
        everything = b"".join(body for _, body in hook.taken)
        assert b"canary" not in everything
        assert b"sk-emu" not in everything
        logged = orjson.dumps(front.events)
        assert b"address-that-is-secret" not in logged


async def test_a_message_is_signed_with_its_time(gateway, hook, flags):
    async with proxied(gateway.url, POLICY, **flags) as front:
        front.running.parts.news.tell(News("a", "ledger_drift", 0.0, "text"))
        await hook.until(lambda: hook.taken)
    headers, body = hook.taken[0]
    stamp = headers["X-Sluicegate-Timestamp"]
    wanted = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, sha256).hexdigest()
    assert headers["X-Sluicegate-Signature"] == f"v1={wanted}"


@pytest.mark.parametrize("status", [500, 404, 307])
async def test_what_was_not_taken_is_tried_again(gateway, hook, flags, status):
    hook.status = status
    async with proxied(gateway.url, POLICY, **flags) as front:
        again = asyncio.create_task(watch(front.running.parts, every_s=0.01, first_pause_s=0.01))
        front.running.parts.news.tell(News("a", "ledger_drift", front.running.parts.wall(), "text"))
        await hook.until(lambda: hook.asked >= 2)
        hook.status = 200
        await hook.until(lambda: hook.taken)
        again.cancel()
        assert front.running.parts.metrics.total("alerts_total", outcome="failed") >= 2
        assert hook.led_away == 0
        assert b"address-that-is-secret" not in orjson.dumps(front.events)


async def test_what_waits_survives_a_restart_and_what_was_told_is_not_told_again(gateway, hook, flags, tmp_path):
    hook.status = 503
    news = News("budget_warning/month/red/0.8/0", "budget_warning", 2e9, "text")
    async with proxied(gateway.url, POLICY, **flags) as front:
        front.running.parts.news.tell(news)
        await hook.until(lambda: hook.asked)
    hook.status = 200
    async with proxied(gateway.url, POLICY, **flags) as front:
        await hook.until(lambda: hook.taken)
        file = NewsFile(tmp_path / "data")
        await front.until(lambda: not file.read().waiting)
    async with proxied(gateway.url, POLICY, **flags) as front:
        front.running.parts.news.tell(news)
        assert front.running.parts.news.waiting == []
    assert len(hook.taken) == 1


async def test_a_new_window_is_told_anew():
    room = Newsroom(delivers=True)
    for window in ("0", "0", "86400"):
        room.tell(News(f"budget_exhausted/day///{window}", "budget_exhausted", 0.0, ""))
    assert len(room.waiting) == 2


async def test_without_an_address_nothing_waits(front):
    await front.post("/v1/chat/completions", CHAT)
    front.running.parts.news.tell(News("a", "ledger_drift", 0.0, "text"))
    assert front.running.parts.news.waiting == []


def test_slack_gets_a_text_whose_marks_are_text():
    news = News("a", "breaker_open", 0.0, "chat/<!channel> & more")
    assert orjson.loads(message(news, AlertFormat.SLACK)) == {"text": "chat/&lt;!channel&gt; &amp; more"}


def test_what_is_no_address_is_refused_without_repeating_it():
    with pytest.raises(Problems) as refused:
        load({}, {"SLUICEGATE_ALERT_URL": "hooks.example/T0/secret-part"}, None)
    assert "is no http or https address" in str(refused.value)
    assert "secret-part" not in str(refused.value)
