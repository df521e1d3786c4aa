"""No byte of a call goes to the gateway before its hold is on the disk: read from what `serve` asks of the system."""

import asyncio
from urllib.parse import urlsplit

import aiohttp
import pytest

from proxy.stores.ledger.sqlite import SqliteLedger
from tests.disks import Disk, left
from tests.journeys.programs import serving
from tests.syscalls import can_trace, events, tracing

pytestmark = pytest.mark.skipif(not can_trace(), reason="strace is missing, or not allowed here")

IMAGE = {"model": "image-lab-small", "prompt": "x"}
CALLS = 25


async def made(path):
    """Tables that are on the disk in any case."""
    await (await SqliteLedger.open(path, now_s=0.0)).close()


@pytest.fixture
def watched(home, gateway, tmp_path):
    """Sends calls one by one, then some at once, through a proxy that is watched; what `holds_on_disk` saw."""

    def run(*arguments):
        log, data = tmp_path / "calls.log", tmp_path / "books"
        asyncio.run(made(data / "ledger.db"))
        disk = Disk({str(data / "ledger.db"): (data / "ledger.db").read_bytes()})
        with serving(
            home, gateway.url, "--auth", "open", "--data", str(data), *arguments, before=tracing(log)
        ) as program:

            async def calls():
                async with aiohttp.ClientSession() as client:

                    async def one():
                        async with client.post(program.url("listens on") + "/v1/images/generate", json=IMAGE) as reply:
                            await reply.read()
                            assert reply.status == 200

                    for _ in range(CALLS):
                        await one()
                    await asyncio.gather(*(one() for _ in range(CALLS)))

            asyncio.run(calls())
            assert program.stop() == 0
            program.process.stdout.read()
        return holds_on_disk(disk, events(log), gateway, tmp_path / "cut")

    return run


def holds_on_disk(disk, done, gateway, folder):
    """When each call was sent: how many holds a power cut in that moment would have left."""
    address, found = urlsplit(gateway.url).netloc, []
    for event in done:
        if "ledger.db" in event.target or event.target.endswith("/books"):
            disk.take(event)
        elif address in event.target and event.data.startswith(b"POST "):
            entries = left(disk.worst(), folder)
            found.append(sum(entry.startswith("hold ") for entry in entries))
    return found


def test_a_call_is_sent_when_its_hold_is_on_the_disk_and_never_before(watched):
    found = watched()
    assert len(found) == 2 * CALLS
    assert all(holds >= sent for sent, holds in enumerate(found, start=1)), str(found)


def test_with_durability_normal_calls_are_sent_before(watched):
    """So the test above sees what it says it sees."""
    found = watched("--durability", "normal")
    assert any(holds < sent for sent, holds in enumerate(found, start=1)), str(found)
