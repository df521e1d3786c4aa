"""The recipes of README.md: the tests run what stands there, so that it is true."""

import re
from pathlib import Path
from typing import Final

from tests.journeys.programs import ROOT

DEFAULT_URL: Final = "http://127.0.0.1:8787"


def recipe(file: str, url: str) -> str:
    """The block of README.md that is meant for this file, for a proxy that listens at `url`."""
    page = (ROOT / "README.md").read_text("utf-8")
    found = re.search(rf"`{re.escape(file)}`[^\n]*:\n\n```\w+\n(.*?)```", page, re.DOTALL)
    assert found, f"README.md has no block for {file}"
    return found[1].replace(DEFAULT_URL, url)


def follow(file: str, folder: Path, url: str) -> None:
    """Write what the recipe says into the file that it is for; `~` is `folder`."""
    path = folder / file.removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(recipe(file, url), "utf-8")
