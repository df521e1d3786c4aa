import ast
import subprocess
import sys
from pathlib import Path

import proxy.emulator

ROOT = Path(proxy.emulator.__file__).parent
ALLOWED = {"aiohttp", "orjson"}


def imported(path):
    """Modules a file imports, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module


def test_the_emulator_imports_nothing_of_the_rest_of_the_proxy():
    """A double that shared code with what it tests would share its mistakes."""
    for path in ROOT.rglob("*.py"):
        for name in imported(path):
            first = name.split(".")[0]
            assert first in sys.stdlib_module_names | ALLOWED or name.startswith("proxy.emulator"), (path.name, name)


def test_importing_the_emulator_starts_nothing_and_needs_no_other_room():
    code = "import sys, proxy.emulator.gateway; print(*sorted(m for m in sys.modules if m.startswith('proxy.')))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent.parent
    )
    assert {name.split(".")[1] for name in done.stdout.split()} == {"emulator"}
