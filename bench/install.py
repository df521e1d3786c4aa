"""How much an installation weighs: `pip install .` into a fresh environment, without extras."""

import subprocess
import sys
from pathlib import Path

from bench.candidates import HOME, ROOT

NOT_OURS = ("pip", "setuptools", "_distutils_hack", "distutils-precedence.pth")
"""What a fresh environment holds anyhow."""


def weigh() -> dict[str, float]:
    """Megabytes (10^6) installed, with and without compiled code; the environment is left for a look."""
    folder = HOME / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", str(ROOT)]
    subprocess.run(pip, check=True, capture_output=True)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    files = [file for file in packages.rglob("*") if file.is_file() and not _is_not_ours(file.relative_to(packages))]
    compiled = sum(file.stat().st_size for file in files if file.suffix == ".pyc")
    whole = sum(file.stat().st_size for file in files)
    return {"MB": whole / 1e6, "MB without compiled code": (whole - compiled) / 1e6}


def _is_not_ours(path: Path) -> bool:
    return path.parts[0].startswith(NOT_OURS)
