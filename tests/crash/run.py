"""One run: callers of five teams keep sending while the proxy is killed again and again; then everything is added up.

The gateway's double is a process of its own and lives through it all: what it counted is the witness.
"""

import asyncio
import hashlib
import itertools
import random
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.crash.audit import CREDIT, Audit
from tests.crash.warm import Proxy
from tests.journeys.programs import GATEWAY_KEY, Emulated, environment

IMAGE: Final = {"model": "image-lab-small", "prompt": "x"}
SAID: Final = [{"role": "user", "content": "[[words:20]]"}]
TALK: Final = {"model": "gpt-4o", "messages": SAID, "max_tokens": 60, "stream": True}
SAME: Final = {"model": "gpt-4o", "messages": SAID, "max_tokens": 60, "temperature": 0}
PAID: Final = frozenset({"plain", "talk"})
"""Teams whose every call is paid."""
LIFE_ANSWERS: Final = 8
"""The proxy lives for fewer paid answers than this: how many seconds that takes is the machine's affair."""
TIGHT: Final = 480
"""Credits of the team that runs dry: sixty images."""

# fmt: off
CALLS: Final = {
    # team     path                     body                                                     callers
    "plain":  ("/v1/images/generate",   IMAGE,                                                   3),
    "tight":  ("/v1/images/generate",   IMAGE,                                                   2),
    "talk":   ("/v1/chat/completions",  {**TALK, "stream_options": {"include_usage": True}},     3),
    "cached": ("/v1/chat/completions",  SAME,                                                    1),
    "barred": ("/v1/chat/completions",  SAME,                                                    1),
}
# fmt: on


def _team(name: str, more: str = "") -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f'  {name}: {{ wait_max: 10s, keys: [{{ id: {name}, sha256: "{digest}" }}]{more} }}\n'


RULES: Final = (
    "gateway_limits: own\nstorms: pass\nteams:\n"
    + _team("plain")
    + _team("tight")
    + _team("talk", ", cache: off")
    + _team("cached")
    + _team("barred", ', models: ["none"]')
    + "budgets:\n"
    + f"  - {{ name: tight, match: {{ team: tight }}, credits: {TIGHT}, per: total }}\n"
    + "  - { name: each, each: team, credits: 1000000, per: total }\n"
    + "prices:\n"
    # What the double charges, so that its sum and the books' are the same figure.
    + "  - { models: gpt-4o, input_per_million: 2.5, output_per_million: 10 }\n"
    + "  - { models: image-lab-small, per_image: 8 }\n"
)


@dataclass
class Place:
    """Where the proxy is, as long as it lives."""

    addresses: tuple[str, str] | None = None
    over: bool = False
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def move(self, addresses: tuple[str, str] | None, *, over: bool = False) -> None:
        async with self.changed:
            self.addresses, self.over = addresses, over
            self.changed.notify_all()

    async def found(self, last: tuple[str, str] | None) -> tuple[str, str] | None:
        """The addresses of a proxy that is not the last one; None when there will be none."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.over or self.addresses not in (None, last))
            return None if self.over else self.addresses


@dataclass
class Told:
    """What callers heard: statuses by team, hits, and reasons of corrections that were acknowledged."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    hits: int = 0
    corrected: set[str] = field(default_factory=set)
    _bell: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def paid(self) -> int:
        return sum(self.statuses[team, 200] for team in PAID)

    def hear(self, team: str, status: int, *, hit: bool) -> None:
        self.statuses[team, status] += 1
        self.hits += hit
        self._bell.set()

    async def more(self, count: int) -> None:
        """Wait until so many paid answers were heard besides those there are."""
        until = self.paid + count
        while self.paid < until:
            self._bell.clear()
            await self._bell.wait()


async def _keep(place: Place, one: Callable[[tuple[str, str]], Awaitable[None]]) -> None:
    """Call again and again, at whatever address the proxy has now."""
    last = None
    while (addresses := await place.found(last)) is not None:
        try:
            while not place.over:
                await one(addresses)
        except (aiohttp.ClientError, OSError):
            last = addresses


def _caller(team: str, client: aiohttp.ClientSession, told: Told, name: str) -> Any:
    path, body, _ = CALLS[team]
    numbers = itertools.count()

    async def one(addresses: tuple[str, str]) -> None:
        headers = {"x-api-key": team, "X-Request-ID": f"{team}-{name}-{next(numbers)}"}
        async with client.post(addresses[0] + path, json=body, headers=headers) as reply:
            await reply.read()
            told.hear(team, reply.status, hit="; hit" in reply.headers.get("Cache-Status", ""))

    return one


def _corrector(client: aiohttp.ClientSession, told: Told) -> Any:
    numbers = itertools.count()

    async def one(addresses: tuple[str, str]) -> None:
        reason = f"reason {next(numbers)}"
        body = {"team": "plain", "credits": "1", "reason": reason}
        async with client.post(addresses[1] + "/api/budgets/adjust", json=body) as reply:
            assert reply.status == 200, await reply.text()
            await reply.read()
        told.corrected.add(reason)

    return one


async def crash(gateway: Emulated, folder: Path, kills: int, rng: random.Random) -> Counter[str]:
    """Kill so many times and look at the books after each; what was seen, for whoever wants to know how much it was."""
    gateway.reset()
    gateway.fill(10**9)
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "a.yaml").write_text(RULES)
    ports = (
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--reconcile-every",
        "0s",
        "--log-level",
        "warning",
    )
    where = ("--upstream", gateway.url, "--policies", str(folder / "rules"), "--data", str(folder / "data"))
    environ = environment(folder, SLUICEGATE_UPSTREAM_KEY=GATEWAY_KEY)

    def start() -> Proxy:
        return Proxy(folder, environ, *ports, *where)

    audit = Audit(folder / "data" / "ledger.db", {"tight": TIGHT * CREDIT})
    place, told = Place(), Told()
    connector, patience = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(60)
    async with aiohttp.ClientSession(connector=connector, timeout=patience) as client:
        callers = [
            asyncio.ensure_future(_keep(place, _caller(team, client, told, str(number))))
            for team, (_, _, count) in CALLS.items()
            for number in range(count)
        ]
        callers.append(asyncio.ensure_future(_keep(place, _corrector(client, told))))
        for _ in range(kills):
            proxy = start()
            ready = asyncio.ensure_future(asyncio.to_thread(proxy.addresses))
            # One in four dies while it starts.
            if rng.random() < 0.25:
                await asyncio.wait([ready], timeout=rng.random() * 0.2)
            else:
                await place.move(await ready)
                heard = asyncio.ensure_future(told.more(rng.randrange(LIFE_ANSWERS)))
                await asyncio.wait([heard, *callers], return_when=asyncio.FIRST_COMPLETED)
                heard.cancel()
                await asyncio.wait(callers, timeout=rng.random() * 0.02, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.to_thread(proxy.kill)
            await place.move(None)
            await ready
            await asyncio.to_thread(_look, audit, told, folder)
            for caller in callers:
                assert not caller.done() or caller.result()
        proxy = start()
        addresses = await asyncio.to_thread(proxy.addresses)
        assert addresses is not None, proxy.logged
        await place.move(None, over=True)
        await asyncio.gather(*callers)
        crashed = _arrived(gateway)
        _compare(audit, crashed, told, kills)
        await _in_peace(client, addresses, gateway, audit, told, crashed)
        assert await asyncio.to_thread(proxy.stop) == 0
    arrived = sum(count for count, _ in crashed.values())
    return Counter(kills=kills, arrived=arrived, entries=audit.entries, hits=told.hits, corrections=len(told.corrected))


def _look(audit: Audit, told: Told, folder: Path) -> None:
    if audit.ledger.exists():
        audit.look(folder)
    # I5: what was acknowledged is there.
    assert told.corrected <= audit.reasons


def _arrived(gateway: Emulated) -> dict[str, tuple[int, int]]:
    """Calls, and what they were charged in units, of each team."""
    calls: Counter[str] = Counter()
    charged: Counter[str] = Counter()
    for seen in gateway.seen():
        team = seen.headers["x-request-id"].partition("-")[0]
        calls[team] += 1
        charged[team] += seen.charged
    return {team: (calls[team], charged[team]) for team in CALLS}


def _spent(audit: Audit, team: str) -> int:
    """Settled and held, without what was corrected by hand."""
    by_hand = CREDIT * len(audit.reasons) if team == "plain" else 0
    return audit.settled[team] + audit.held[team] - by_hand


def _compare(audit: Audit, arrived: dict[str, tuple[int, int]], told: Told, kills: int) -> None:
    for team, (_, _, callers) in CALLS.items():
        calls, charged = arrived[team]
        # I6: all that reached the gateway is in the books of its own team (I8), and little more than that.
        assert charged <= _spent(audit, team), f"I6: {team} was charged more than its books say"
        assert calls <= audit.holds[team], f"I6: {team} sent without a hold"
        assert audit.holds[team] - calls <= kills * callers, f"I8: {team} holds what nobody of it asked for"
    # I7: an answer from the cache and a refusal spend nothing.
    assert told.hits
    assert audit.holds["cached"] <= kills + 1
    assert told.statuses["barred", 403]
    assert audit.holds["barred"] == arrived["barred"][0] == 0
    assert arrived["tight"][1] <= TIGHT * CREDIT


async def _in_peace(
    client: aiohttp.ClientSession,
    addresses: tuple[str, str],
    gateway: Emulated,
    audit: Audit,
    told: Told,
    before: dict[str, tuple[int, int]],
) -> None:
    """Without a crash the books and the gateway agree to the last unit; and I3: the projection is what entries say."""
    was = {team: _spent(audit, team) for team in CALLS}
    for team in ("plain", "talk"):
        for number in range(5):
            await _caller(team, client, told, f"peace{number}")(addresses)
    after = _arrived(gateway)
    for team in CALLS:
        headers = {"x-api-key": team}
        shown: Any = None
        while shown is None or (team in ("plain", "talk") and int(_units(shown, "held")) != audit.held[team]):
            async with client.get(addresses[0] + "/-/budget", headers=headers) as reply:
                shown = await reply.json()
        grown = after[team][1] - before[team][1]
        by_hand = CREDIT * len(audit.reasons) if team == "plain" else 0
        assert _units(shown, "spent") + _units(shown, "held") == was[team] + by_hand + grown, team
    async with client.get(addresses[1] + "/api/ledger/verify") as reply:
        assert await reply.json() == {"ok": True, "problems": []}


def _units(shown: Any, what: str) -> int:
    (row,) = (row for row in shown["limits"] if row["name"] == "each")
    whole, _, rest = row[what].partition(".")
    return int(whole) * CREDIT + int(rest.ljust(8, "0") or 0)


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
