import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / "docs" / name).read_text("utf-8") for name in ("threats.md", "mcp.md")}
NAMED = [found for page in PAGES.values() for found in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)]


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part.rpartition("/")[2])
def test_every_guard_names_a_test_that_is_there(path, name):
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_every_line_names_its_test_or_says_that_there_is_none_yet(page):
    lines = re.findall(r"^\| (.+?\.) \| (.+?) \|$", PAGES[page], re.MULTILINE)
    assert len(lines) >= PAGES[page].count("::")
    for line, shown in lines:
        assert re.fullmatch(r"`tests/[\w/]+\.py::\w+`|not yet(: .+)?", shown), line
