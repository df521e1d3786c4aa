"""The demo with traffic, in a process of its own, and a Chromium that looks at its page."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("SLUICEGATE_PYTHON", str(ROOT / ".venv/bin/python"))
"""An interpreter that has the proxy installed, or can import it from the repository."""

REQUESTS = 60
"""So much traffic before anybody looks: hits, refusals and several budgets are in it."""


def seen(url: str) -> int:
    """How many requests the page tells of."""
    with urlopen(f"{url}/requests.json", timeout=10) as answer:
        return int(re.search(rb'"number":(\d+)', answer.read())[1])


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The page of a demo that had some traffic, and has more."""
    command = [PYTHON, "-m", "proxy", "demo", "--traffic", "--every", "0.1", "--port", "0"]
    environ = {key: value for key, value in os.environ.items() if key != "SLUICEGATE_PYTHON"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as demo:
        try:
            greeting = demo.stdout.readline()
            address = re.search(r"page, health and metrics at (\S+)$", greeting.strip())[1]
            until = time.monotonic() + 60
            while seen(address) < REQUESTS and time.monotonic() < until:
                time.sleep(0.2)
            yield address
        finally:
            demo.send_signal(signal.SIGTERM)
            demo.communicate(timeout=30)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.fail("chromium is missing: install Debian's package chromium; the page is NOT tried in a browser")
    with sync_playwright() as play:
        # Containers have no user namespaces to make a sandbox of; the only page opened is ours.
        running = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()
