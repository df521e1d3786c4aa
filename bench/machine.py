"""The machine in words: cores, memory, versions; no names, no paths."""

import os
import platform
import re
import shutil
import subprocess
import sysconfig
from importlib.metadata import version
from pathlib import Path


def described() -> list[str]:
    """One line a fact."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    packages = ", ".join(f"{name} {version(name)}" for name in ("aiohttp", "uvloop", "orjson", "prometheus-client"))
    optimised = "with" if "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS")) else "without"
    kind = cpu[1] if cpu else "unknown processor"
    gib = int(memory[1]) // 1_048_576 if memory else 0
    linux = ".".join(platform.release().split(".")[:2])
    return [
        f"{os.cpu_count()} cores ({kind}), {gib} GiB of memory, {platform.system()} {linux}",
        f"Python {platform.python_version()}, built {optimised} profile-guided optimisation; {packages}",
        ", ".join(filter(None, (_said("nginx", "-v"), _said("node", "-v", name="Node ")))),
    ]


def _said(program: str, flag: str, name: str = "") -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin")
    if found is None:
        return ""
    done = subprocess.run([found, flag], capture_output=True, text=True, check=False)
    return name + (done.stdout + done.stderr).strip().removeprefix("nginx version: ")


def load_average() -> float:
    """Processes that ran or waited to, in the last minute: above one or two the machine had other work."""
    return os.getloadavg()[0]
