import asyncio
import re
import signal
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

import proxy
from proxy.cli.emulate import emulate

ROOT = Path(proxy.__file__).parent.parent
START = "from proxy.cli.emulate import emulate; emulate()"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_prints_its_url_and_keys_serves_and_ends_quickly(number):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, "--listen", "127.0.0.1:0", "--credits", "5", "--no-limits",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    line = (await process.stdout.readline()).decode()
    url, key = re.search(r"http://[\d.:]+", line)[0], re.search(r"sk-emu-beta-1", line)[0]
    request = urllib.request.Request(f"{url}/v1/gateway/credits/", headers={"Authorization": f"Bearer {key}"})
    answer = await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).read())
    process.send_signal(number)
    _, errors = await process.communicate()
    assert answer == b'{"credits":5}'
    assert (process.returncode, errors) == (0, b"")


async def test_it_serves_the_group_service_when_asked():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, "--listen", "127.0.0.1:0", "--groups-listen", "127.0.0.1:0",
        stdout=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    await process.stdout.readline()
    line = (await process.stdout.readline()).decode()
    url, token = re.search(r"(http://[\d.:]+), x-access-token (\S+)", line).groups()
    request = urllib.request.Request(f"{url}/v1/admin/member-groups/1/", headers={"x-access-token": token})
    answer = await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).read())
    process.terminate()
    await process.wait()
    assert b'"success":true' in answer


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--listen", "nowhere"], "HOST:PORT"),
        (["--groups-listen", "x"], "HOST:PORT"),
        (["--credits", "many"], "not a number of credits"),
        (["--credits", "NaN"], "from 0"),
        (["--fault", "nonsense", "--listen", "127.0.0.1:0"], "no fault 'nonsense'"),
        (["--time-scale", "0", "--listen", "127.0.0.1:0"], "time can only be scaled"),
        (["--listen", "192.0.2.1:1"], "cannot listen on 192.0.2.1:1"),
    ],
)
def test_a_mistake_is_explained_and_ends_it(arguments, word):
    done = CliRunner().invoke(emulate, arguments)
    assert done.exit_code != 0
    assert word in done.output


def test_the_faults_can_be_listed():
    done = CliRunner().invoke(emulate, ["--list-faults"])
    assert done.exit_code == 0
    assert "\nreset-before-head   the connection is reset" in done.output


def test_every_option_of_a_run_has_a_flag():
    from dataclasses import fields

    from proxy.emulator.options import Options

    flags = {parameter.name for parameter in emulate.params} - {"groups_listen", "list_faults"}
    renamed = {"host": "listen", "port": "listen", "chunk_delay_s": "chunk_delay"}
    assert {renamed.get(field.name, field.name) for field in fields(Options)} == flags
