"""The proxy asks after operations that nobody asks after, seldom, across restarts, and charges what never ends."""

import contextlib
import itertools

import aiohttp
import pytest

from proxy.core.prices import FLAT
from proxy.emulator.gateway import running as emulated
from proxy.emulator.options import Options
from proxy.emulator.rooms.images import FAILS
from proxy.server import polling
from proxy.server.operations import FIRST_GAP_S, GAP_MAX_S
from proxy.stores.ledger.sqlite import SqliteLedger
from tests.proxies import RESPONSE, proxied

VIDEO = {"model": "video-200", "prompt": "a heron"}
BACKGROUND = {**RESPONSE, "background": True, "store": True}


class Clock:
    """Wall time that a test moves."""

    def __init__(self):
        self.now_s = 1_800_000_000.0

    def __call__(self):
        return self.now_s

    def later(self, by_s):
        self.now_s += by_s


@contextlib.asynccontextmanager
async def on_disk(gateway, tmp_path, clock, **flags):
    ledger = await SqliteLedger.open(tmp_path / "ledger.db", now_s=clock())
    async with proxied(gateway.url, ledger=ledger, wall=clock, **flags) as front:
        yield front


def polls(gateway):
    return [seen.target for seen in gateway.journal if seen.method == "GET"]


async def look(front, clock, by_s):
    clock.later(by_s)
    await polling.look(front.running.parts)


@pytest.mark.parametrize(
    ("path", "body", "target"),
    [
        ("/v1/video/generation", VIDEO, "/v1/gateway/video/generation/models/"),
        ("/v1/images/generate", {"model": "image-b-small", "prompt": "x"}, "/v1/gateway/images/generate/img_"),
        ("/v1/responses", BACKGROUND, "/v1/gateway/responses/resp_"),
    ],
)
async def test_work_that_nobody_asks_after_is_settled_by_the_proxys_own_question(gateway, tmp_path, path, body, target):
    clock = Clock()
    async with on_disk(gateway, tmp_path, clock) as front:
        assert (await front.post(path, body)).status == 200
        operations = front.running.parts.operations
        for _ in range(5):
            await look(front, clock, GAP_MAX_S)
        assert len(operations) == 0
        assert front.running.parts.books.open_holds == 0
        assert polls(gateway)
        assert all(seen.startswith(target) for seen in polls(gateway))


@pytest.fixture
async def endless():
    """A gateway whose operations do not end."""
    async with emulated(Options(limits=False, jobs_polls=1_000_000)) as running:
        yield running


async def test_the_pauses_between_questions_grow_and_a_callers_own_question_counts(endless, tmp_path):
    clock = Clock()
    async with on_disk(endless, tmp_path, clock) as front:
        made = await front.post("/v1/video/generation", VIDEO)
        asked = []
        for second in range(300):
            await look(front, clock, 1.0)
            if len(polls(endless)) > len(asked):
                asked.append(second + 1)
        assert asked[0] == FIRST_GAP_S
        gaps = [after - before for before, after in itertools.pairwise(asked)]
        assert gaps == [20, 40, 60, 60, 60]
        clock.later(GAP_MAX_S)
        await front.get(f"/v1/video/generation/{made.json['operation_id']}")
        before = len(polls(endless))
        await look(front, clock, 1.0)
        assert len(polls(endless)) == before


async def test_an_open_operation_survives_a_restart_with_its_hold_and_its_owner(gateway, tmp_path):
    clock = Clock()
    async with on_disk(gateway, tmp_path, clock) as front:
        made = await front.post("/v1/video/generation", VIDEO)
        await front.running.parts.books.written()
    async with on_disk(gateway, tmp_path, clock) as front:
        books = front.running.parts.books
        assert (books.open_holds, books.figures("default").held) == (1, FLAT.per_video)
        # The model of the question comes from the owner, which is kept as well.
        while (reply := await front.get(f"/v1/video/generation/{made.json['operation_id']}")).json[
            "status"
        ] != "completed":
            assert reply.status == 200
        await books.written()
        assert (books.open_holds, books.figures("default").spent) == (0, FLAT.per_video)
    async with on_disk(gateway, tmp_path, clock) as front:
        assert len(front.running.parts.operations) == 0


async def test_work_that_fails_is_free_whoever_finds_out(gateway, tmp_path):
    clock = Clock()
    async with on_disk(gateway, tmp_path, clock) as front:
        await front.post("/v1/video/generation", {**VIDEO, "prompt": f"{FAILS} x"})
        for _ in range(5):
            await look(front, clock, GAP_MAX_S)
        await front.running.parts.books.written()
        figures = front.running.parts.books.figures("default")
        assert (figures.spent, figures.held) == (0, 0)


async def test_work_that_never_ends_is_asked_after_once_more_and_charged_at_its_hold(endless, tmp_path):
    clock = Clock()
    async with on_disk(endless, tmp_path, clock) as front:
        await front.post("/v1/video/generation", VIDEO)
        await look(front, clock, 7100.0)
        assert len(front.running.parts.operations) == 1
        before = len(polls(endless))
        await look(front, clock, 200.0)
        assert len(polls(endless)) == before + 1
        await front.running.parts.books.written()
        store = front.running.parts.books._store
        ((hold, state),) = await store.doubtful()
        assert (state.charged, hold in store.projection.holds) == (FLAT.per_video, False)
        assert await store.operations() == []


async def test_a_question_without_an_answer_is_put_off(gateway, tmp_path):
    clock = Clock()
    async with on_disk(gateway, tmp_path, clock) as front:
        await front.post("/v1/video/generation", VIDEO)
        gateway.set_fault("502", prefix="/v1/gateway/video/")
        await look(front, clock, FIRST_GAP_S)
        await look(front, clock, 1.0)
        assert len(polls(gateway)) == 1
        assert len(front.running.parts.operations) == 1


async def test_where_callers_bring_their_own_keys_nobody_else_asks(gateway, tmp_path):
    clock = Clock()
    async with on_disk(gateway, tmp_path, clock, credential="caller", key=None) as front:
        bearer = {"Authorization": "Bearer sk-emu-alpha-1"}
        assert (await front.post("/v1/video/generation", VIDEO, headers=bearer)).status == 200
        await look(front, clock, 7300.0)
        assert polls(gateway) == []
        assert len(front.running.parts.operations) == 0


@pytest.mark.parametrize("fault", [None, "cut"])
async def test_a_background_stream_binds_its_hold_with_its_first_event(gateway, tmp_path, fault):
    """Should the process die in the middle of it, or the stream break off, a poll still ends the hold."""
    clock = Clock()
    gateway.set_fault("slow", gate="rest", at=2)
    if fault is not None:
        gateway.set_fault(fault, after=4)
    async with on_disk(gateway, tmp_path, clock) as front:
        books, operations = front.running.parts.books, front.running.parts.operations
        response = await front.client.post(front.url + "/v1/responses", json={**BACKGROUND, "stream": True})
        await response.content.readany()
        (kept,) = await books._store.operations()
        assert kept.hold.id in books._store.projection.holds
        gateway.open_gate("rest")
        await response.read()
        await front.request()
        assert len(operations) == (0 if fault is None else 1)
        gateway.clear_faults()
        for _ in range(5):
            await look(front, clock, GAP_MAX_S)
        await books.written()
        assert (books.open_holds, len(operations)) == (0, 0)
        assert books.figures("default").spent > 0
        assert await books._store.operations() == []


async def test_a_stream_cut_inside_its_first_event_keeps_its_hold_until_a_poll(gateway, tmp_path):
    """Its id was seen and bound before the event was whole; what became of the work only the gateway knows."""
    clock = Clock()
    gateway.set_fault("cut", bytes=200)
    async with on_disk(gateway, tmp_path, clock) as front:
        with contextlib.suppress(aiohttp.ClientError):
            await front.post("/v1/responses", {**BACKGROUND, "stream": True})
        await front.request()
        assert (front.running.parts.books.open_holds, len(front.running.parts.operations)) == (1, 1)
