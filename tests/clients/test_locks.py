"""What `make clients` installs is pinned, and comes from the registry that the machine is set up for."""

import json
import re

import pytest

from tests.clients.roster import HERE, JS

LOCK = json.loads((JS / "package-lock.json").read_text("utf-8"))
ASKED = json.loads((JS / "package.json").read_text("utf-8"))["dependencies"]


def test_every_package_has_a_hash_and_no_address():
    packages = {name: row for name, row in LOCK["packages"].items() if name}
    assert packages
    assert not [name for name, row in packages.items() if "integrity" not in row or "resolved" in row]


def test_versions_are_exact_and_those_of_the_lock():
    assert LOCK["packages"][""]["dependencies"] == ASKED
    exact = r"(npm:\S+@)?\d+\.\d+\.\d+(-alpha\.\d+)?"
    assert not [version for version in ASKED.values() if not re.fullmatch(exact, version)]


@pytest.mark.parametrize(("lock", "what"), [("aider", "aider-chat"), ("fastmcp", "fastmcp")])
def test_what_lives_alone_is_locked_with_hashes(lock, what):
    text = (HERE / f"constraints-{lock}.txt").read_text("utf-8")
    entries = re.split(r"\n(?=\w)", text)[1:]
    assert [entry for entry in entries if entry.startswith(f"{what}==")]
    assert not [
        entry for entry in entries if not re.match(r"[\w.-]+==\S+.*--hash=sha256:[0-9a-f]{64}", entry, re.DOTALL)
    ]
