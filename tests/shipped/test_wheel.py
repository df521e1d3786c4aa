import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this folder without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=60,
    )
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    tops = {name.split("/")[0].split("-")[0] for name in wheel.namelist()}
    assert tops == {"proxy", "sluicegate"}
    assert not [name for name in wheel.namelist() if name.endswith((".pth", ".so"))]


def test_every_module_is_in_the_wheel(wheel):
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "proxy").rglob("*.py")}
    assert not modules - set(wheel.namelist())


def test_the_gateways_limits_are_in_the_wheel(wheel):
    assert "proxy/gateway.yaml" in wheel.namelist()


def test_the_licence_is_in_the_wheel(wheel):
    assert [name for name in wheel.namelist() if name.endswith("licenses/LICENSE")]


def test_the_command_is_in_the_wheel(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "sluicegate = proxy.cli.main:main" in wheel.read(name).decode()
