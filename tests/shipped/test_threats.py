import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part.rpartition("/")[2])
def test_every_guard_names_a_test_that_is_there(path, name):
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_every_line_names_its_test_or_says_that_there_is_none_yet():
    lines = re.findall(r"^\| (.+?\.) \| (.+?) \|$", PAGE, re.MULTILINE)
    assert len(lines) >= len(NAMED)
    for line, shown in lines:
        assert re.fullmatch(r"`tests/[\w/]+\.py::\w+`|not yet(: .+)?", shown), line
