"""Old books: how long a start takes on a ledger of millions of entries and a cache of a million answers, and how long a
call takes then, beside a proxy that begins.

    python -m bench.books                         10,000,000 entries, 1,000,000 answers, 1,000 teams of ten keys
    python -m bench.books --entries 1000000       fewer of them
    python -m bench.books --teams 1               one team

The entries are made with SQL, as months of calls would have left them. `make bench` has a smaller file (the candidate
"sluicegate grown"), because making these takes minutes and a gigabyte or four. Each call is one that the cache may keep
and does not have: it is looked for in the file, held, fetched, settled and kept.
"""

import argparse
import asyncio
import hashlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import aiohttp

from bench.process import CANDIDATE_CORE, OTHER_CORE, Process, free_port
from proxy.stores.cache.sqlite import SqliteCache
from proxy.stores.ledger import schema
from proxy.stores.ledger.rows import QUARTER_S
from proxy.stores.ledger.sqlite import SqliteLedger

ROOT: Final = Path(__file__).resolve().parent.parent

KEYS: Final = 10
"""Virtual keys of each team; a budget keeps an account for each."""
DAYS: Final = 90
CALLS: Final = 2000
ROUNDS: Final = 3
"""Each folder is started on so often, in turns; the calls of all rounds count together."""
CACHE_BYTES: Final = 4 * 1024**3


def _body(number: int) -> dict[str, object]:
    """A deterministic call that nobody has made before."""
    said = f"question {number} of {time.time_ns()}"
    messages = [{"role": "user", "content": said}]
    return {"model": "bench-small", "messages": messages, "max_tokens": 16, "temperature": 0}


def fill_cache(path: Path, answers: int, now_s: float) -> None:
    """Answers of some 700 bytes, each with a key of its own, fresh for a day."""
    with closing(sqlite3.connect(path, isolation_level=None)) as cache:
        cache.execute("PRAGMA synchronous = OFF")
        cache.execute("PRAGMA cache_size = -400000")
        cache.execute("BEGIN")
        cache.execute(
            f"""
            WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {answers})
            INSERT INTO entries (
                key, scope, route, model, status, headers, body, stored_s, until_s, used_s, credits, usage
            )
            SELECT randomblob(32), 'team-' || (n % 1000), 'chat', 'bench-small', 200,
                '{{"content-type":"application/json"}}', zeroblob(500),
                {now_s}, {now_s} + 86400, {now_s} + n * 1e-3, 2000, '{{"input":10,"output":10}}'
            FROM numbers
            """
        )
        cache.execute("COMMIT")


def fill(path: Path, entries: int, teams: int, now_s: float) -> None:
    """Holds and settlements, evenly over the days before now; indexes are made when all rows are there."""
    keys, holds = teams * KEYS, entries // 2
    step_s = DAYS * 86400 / holds
    with closing(sqlite3.connect(path, isolation_level=None)) as books:
        indexes = books.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'entries'"
        ).fetchall()
        books.execute("PRAGMA synchronous = OFF")
        books.execute("PRAGMA cache_size = -400000")
        books.execute("BEGIN")
        for name, _ in indexes:
            books.execute(f"DROP INDEX {name}")
        books.execute(
            f"""
            WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {keys})
            INSERT INTO facts ({schema.FACT_NAMES})
            SELECT 'team-' || (n / {KEYS}), 'key-' || n, 'chat', 'bench-small', '', '', '', '' FROM numbers
            """
        )
        rows = f"""
            WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {holds}),
            calls AS (
                SELECT n, {now_s} - {DAYS * 86400} + n * {step_s} AS at_s, n * 7919 % {keys} + 1 AS facts FROM numbers
            ), kinds (kind) AS (VALUES ('hold'), ('settle'))
            INSERT INTO entries (id, kind, hold, at_s, facts, credits, calls, basis, ending, quarter)
            SELECT 2 * n + (kind = 'settle') + 1, kind, printf('%032x', n), at_s, facts,
                CASE kind WHEN 'hold' THEN 5000 ELSE 2000 END, 0, CASE kind WHEN 'hold' THEN '' ELSE 'usage' END,
                CASE kind WHEN 'hold' THEN '' ELSE 'answered' END,
                CASE kind WHEN 'hold' THEN NULL ELSE CAST(at_s / {QUARTER_S} AS INTEGER) END
            FROM calls CROSS JOIN kinds
        """
        books.execute(rows)
        books.execute(
            "INSERT INTO totals SELECT quarter, facts, sum(credits), sum(calls) FROM entries WHERE kind = 'settle' "
            "GROUP BY quarter, facts"
        )
        for _, sql in indexes:
            books.execute(sql)
        books.execute("COMMIT")


def policy(teams: int) -> str:
    """Budgets that keep an account for everybody, each team and each key. One key of each team is asked with."""
    rows = [
        f"  team-{team}: {{ keys: [{{ id: key-{team * KEYS}, sha256: {_digest(team)} }}] }}\n" for team in range(teams)
    ]
    return (
        "gateway_limits: own\nteams:\n"
        + "".join(rows)
        + "prices: [{ models: 'bench*', input_per_million: 2.5, output_per_million: 10 }]\n"
        + "budgets:\n"
        + "  - { name: company, credits: 80000000, per: month }\n"
        + "  - { name: each-team, each: team, credits: 40000000, per: month }\n"
        + "  - { name: each-key, each: key, credits: 40000000, within: 24h }\n"
    )


def key(team: int) -> str:
    """The key that a team is asked with."""
    return f"sk-bench-{team}"


def _digest(team: int) -> str:
    return f'"{hashlib.sha256(key(team).encode()).hexdigest()}"'


async def measure(folder: Path, teams: int) -> tuple[float, list[float]]:
    """Seconds from the start of the process to its first answer; how long each call took, in milliseconds."""
    gateway, port = free_port(), free_port()
    fake = Process.start([sys.executable, "-m", "bench.gateway", str(gateway)], core=OTHER_CORE,
                         log=folder / "gateway.log", env={}, folder=ROOT)  # fmt: skip
    began_s = time.perf_counter()
    serve = ["serve", "--upstream", f"http://127.0.0.1:{gateway}", "--listen", f"127.0.0.1:{port}", "--policies",
             str(folder / "rules"), "--data", str(folder / "data"), "--admin-listen", "127.0.0.1:0",
             "--reconcile-every", "0s", "--cache-size", str(CACHE_BYTES)]  # fmt: skip
    ours = Process.start([sys.executable, "-m", "proxy", *serve], core=CANDIDATE_CORE, log=folder / "ours.log",
                         env={"SLUICEGATE_UPSTREAM_KEY": "x"}, folder=ROOT)  # fmt: skip
    try:
        async with aiohttp.ClientSession() as client:
            first_s = await _first(client, port, ours.popen, began_s)
            took_ms, url = [], f"http://127.0.0.1:{port}/v1/chat/completions"
            for number in range(CALLS):
                headers = {"x-api-key": key(number % teams)}
                sent_s = time.perf_counter()
                async with client.post(url, json=_body(number), headers=headers) as reply:
                    await reply.read()
                    assert reply.status == 200, await reply.text()
                took_ms.append(1000 * (time.perf_counter() - sent_s))
    finally:
        ours.end()
        fake.end()
    return first_s, took_ms


async def _first(client: aiohttp.ClientSession, port: int, process: "subprocess.Popen[bytes]", began_s: float) -> float:
    while process.poll() is None:
        try:
            async with client.get(f"http://127.0.0.1:{port}/-/health"):
                return time.perf_counter() - began_s
        except aiohttp.ClientError:
            await asyncio.sleep(0.01)
    raise SystemExit("the proxy ended before it answered")


async def make(folder: Path, teams: int, entries: int, answers: int) -> None:
    """A data folder and its policy, where they are not there yet."""
    (folder / "rules").mkdir(parents=True, exist_ok=True)
    (folder / "rules" / "bench.yaml").write_text(policy(teams))
    ledger, cache = folder / "data" / "ledger.db", folder / "data" / "cache.db"
    if ledger.exists():
        return
    await (await SqliteLedger.open(ledger, now_s=time.time())).close()
    await (await SqliteCache.open(cache, CACHE_BYTES)).close()
    if entries:
        await asyncio.to_thread(fill, ledger, entries, teams, time.time())
    if answers:
        await asyncio.to_thread(fill_cache, cache, answers, time.time())


async def main() -> None:
    """Make the files, start on them, call, and print a line for a proxy that begins and one for old books."""
    parser = argparse.ArgumentParser(prog="python -m bench.books", description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--teams", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="keep the files here, and use them again")
    given = parser.parse_args()
    home = given.folder or Path(tempfile.mkdtemp(prefix="books-"))
    sizes = {"new": (1, 0, 0), "old": (given.teams, given.entries, given.answers)}
    firsts_s: dict[str, list[float]] = {name: [] for name in sizes}
    calls_ms: dict[str, list[float]] = {name: [] for name in sizes}
    for name, (teams, entries, answers) in sizes.items():
        await make(home / name, teams, entries, answers)
    for _ in range(ROUNDS):
        for name, (teams, _, _) in sizes.items():
            first_s, took_ms = await measure(home / name, teams)
            firsts_s[name].append(first_s)
            calls_ms[name] += took_ms
    for name, (teams, entries, answers) in sizes.items():
        print(
            f"{entries:,} entries, {answers:,} answers, {teams:,} teams, {teams * KEYS:,} keys: first answer after "
            f"{statistics.median(firsts_s[name]):.2f} s, a call {statistics.median(calls_ms[name]):.2f} ms (median), "
            f"{statistics.quantiles(calls_ms[name], n=100)[98]:.2f} ms (p99)"
        )
    print(f"a call on old books against one on new ones: {_ratio(calls_ms):.2f} (medians)")
    if given.folder is None:
        shutil.rmtree(home)


def _ratio(calls_ms: dict[str, list[float]]) -> float:
    return statistics.median(calls_ms["old"]) / statistics.median(calls_ms["new"])


if __name__ == "__main__":
    asyncio.run(main())
