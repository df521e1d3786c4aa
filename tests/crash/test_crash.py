"""kill -9 at random points while callers keep sending: the books never say less than what reached the gateway."""

import random

import pytest

from tests.crash.run import crash
from tests.journeys.programs import emulating


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(4))
async def test_however_often_it_is_killed_the_books_know_what_reached_the_gateway(seed, tmp_path):
    (tmp_path / "run").mkdir()
    with emulating(tmp_path) as gateway:
        seen = await crash(gateway, tmp_path / "run", 75, random.Random(seed))
    assert seen["kills"] == 75
    assert seen["arrived"] > 75, "callers got through between the kills"
