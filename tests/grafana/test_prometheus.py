"""A real Prometheus scrapes a proxy with traffic, and answers every query of the dashboard and every rule."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import aiohttp

from proxy.core.limits import Budget, Counts, Each, Match, Rate
from proxy.core.policy import Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.windows import Calendar, Per, Sliding
from proxy.server import reconciler, warnings
from tests.grafana.queries import GRAFANA, QUERIES, RULES, selectors
from tests.ports import held_port
from tests.proxies import CHAT, proxied

CREDIT = 10**8
IMAGE = {"model": "image-lab-large", "prompt": "A hill."}
POLICY = Policy(
    {"red": Team("red", deny_models=("gpt-5*",)), "blue": Team("blue")},
    open_team="red",
    budgets=(
        Budget("all", 500_000 * CREDIT, Calendar(Per.MONTH)),
        Budget("red", 120 * CREDIT, Sliding(86_400.0), Match(team="red"), warn_at=(0.4,)),
        Budget("images", 50 * CREDIT, Calendar(Per.MONTH), Match(model="image-*"), each=Each.TEAM),
    ),
    prices=PriceTable(
        (
            Rule("models", "image-*", Price(per_image=50 * CREDIT)),
            Rule(
                "models", "gpt-4o*", Price(input_per_million=CREDIT, output_per_million=CREDIT, output_tokens_max=100)
            ),
        )
    ),
    unpriced_hold=CREDIT,
    rates=(Rate("member", Counts.REQUESTS, 1000, 60.0),),
)
TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
SCRAPED = "sum_over_time(up[5m])"
"""Scrapes that got an answer; on a busy machine one may not have it within its second."""
SCRAPES = 4
"""Two for a rate, and two so that traffic lies between some of them."""


async def drive(front, gateway, kind):
    """Something of everything: answers, hits, streams, tools, refusals of every kind, faults of the gateway."""
    for body in (
        CHAT,
        {**CHAT, "temperature": 0},
        {**CHAT, "temperature": 0},
        {**CHAT, "stream": True, "stream_options": {"include_usage": True}},
        {**CHAT, "model": "gpt-5-large"},
        {**CHAT, "model": "unheard-of", "max_tokens": 5},
    ):
        await front.post("/v1/chat/completions", body)
    await front.post("/v1/images/generate", IMAGE)
    await front.post("/v1/mcp/calc", TOOL, headers={"Accept": "application/json, text/event-stream"})
    gateway.set_fault(kind)
    await front.post("/v1/chat/completions", CHAT)
    gateway.clear_faults()
    warnings.tell(front.running.parts)


@asynccontextmanager
async def scraped(prometheus, folder, target):
    """The address of a Prometheus that scrapes every second."""
    config = folder / "prometheus.yml"
    job = {"job_name": "sluicegate", "static_configs": [{"targets": [target]}]}
    rules = [str(GRAFANA / "alerts.yml")]
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": rules,
                "scrape_configs": [job],
            }
        )
    )
    with held_port() as port:
        address = f"127.0.0.1:{port}"
        flags = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={address}"]
        flags += ["--enable-feature=exemplar-storage", "--log.level=error"]
        process = await asyncio.create_subprocess_exec(
            prometheus, *flags, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            yield f"http://{address}"
        finally:
            process.kill()
            await process.wait()


async def ask(client, url, query):
    """The result of an instant query; raises for a query that fails."""
    async with client.get(f"{url}/api/v1/query", params={"query": query}) as answer:
        said = await answer.json()
    assert said["status"] == "success", (query, said)
    return said["data"]["result"]


async def examples(client, url, series):
    """The request ids that stand beside the buckets of a histogram."""
    window = {"query": series, "start": "0", "end": str(time.time() + 3600)}
    async with client.get(f"{url}/api/v1/query_exemplars", params=window) as answer:
        said = await answer.json()
    return {one["labels"]["request_id"] for row in said["data"] for one in row["exemplars"]}


async def until(client, url, query, least):
    """Wait until a query has come to a value."""
    async with asyncio.timeout(90):
        while True:
            try:
                found = await ask(client, url, query)
            except (aiohttp.ClientError, AssertionError):
                found = []
            if found and float(found[0]["value"][1]) >= least:
                return
            await asyncio.sleep(0.2)


def filled_in(query):
    for word, value in (("$job", ".*"), ("$instance", ".*"), ("$team", ".*"), ("$model", ".*")):
        query = query.replace(word, value)
    return query.replace("$__rate_interval", "2m").replace("$__range", "5m")


async def test_every_query_of_the_dashboard_and_of_the_rules_finds_what_it_is_about(gateway, prometheus, tmp_path):
    gateway.set_credits("alpha", 10**6 * CREDIT)
    async with proxied(gateway.url, POLICY, data=str(tmp_path / "data")) as front:
        target = front.running.admin_url.removeprefix("http://")
        async with scraped(prometheus, tmp_path, target) as url:
            await reconciler.look(front.running.parts)
            await until(front.client, url, SCRAPED, 1)
            for kind in ("503", "402", "cut"):
                await drive(front, gateway, kind)
            await until(front.client, url, SCRAPED, SCRAPES)
            await drive(front, gateway, "1010")
            await until(front.client, url, SCRAPED, 2 * SCRAPES)
            empty = [(title, query) for title, query in QUERIES if not await ask(front.client, url, filled_in(query))]
            assert empty == []
            for rule in RULES:
                await ask(front.client, url, rule["expr"])
                missing = [one for one in selectors(rule["expr"]) if not await ask(front.client, url, one)]
                assert missing == [], rule["alert"]
            shown = await examples(front.client, url, "sluicegate_request_duration_seconds_bucket")
            assert shown
            assert shown <= {event["id"] for event in front.requests}
            # The first charges of the proxy's life are increases, too: their series were there before.
            expected = 'ALERTS{alertstate="firing",alertname=~"SluicegateBudgetExhausted|SluicegateCallsWithoutPrice"}'
            await until(front.client, url, f"count(count by (alertname) ({expected}))", 2)
            firing = {one["metric"]["alertname"] for one in await ask(front.client, url, 'ALERTS{alertstate="firing"}')}
            for healthy in ("SluicegateDown", "SluicegateLedgerDown", "SluicegatePolicyRefused"):
                assert healthy not in firing


async def test_a_scrape_is_what_promtool_calls_well_formed(front, promtool):
    await front.post("/v1/chat/completions", CHAT)
    async with front.client.get(front.running.admin_url + "/metrics") as answer:
        text = await answer.read()
    process = await asyncio.create_subprocess_exec(
        promtool,
        "check",
        "metrics",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate(text)
    assert (process.returncode, said) == (0, b"")
