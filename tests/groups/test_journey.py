"""Pull, edit, plan, apply, over random tenants and edits: what the file says comes true, and nothing else does."""

import asyncio
import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.emulator.groups.service import running_groups
from proxy.groups.applied import Applied
from proxy.groups.apply import apply
from proxy.groups.compare import compare
from proxy.groups.groupsfile import GroupsFile, read_file
from proxy.groups.present import silent
from proxy.groups.pull import Part, pull
from tests.groups.services import client_of
from tests.groups.tenants import Editor, furnish, state_of


class Desk:
    """A tenant made from a seed, the file pulled from it and edited, and what somebody does with that."""

    def __init__(self, service, client, folder):
        self.service, self.client, self.path = service, client, Path(folder) / "groups.yaml"
        self.file = GroupsFile(None, ())
        self.outside = set()

    async def open(self, seed, edits):
        rng = random.Random(seed)
        furnish(self.service.tenant, rng)
        await pull(self.client, self.path, self.service.url, frozenset(Part), silent)
        pulled = read_file(self.path)
        assert (await self.plan(pulled)).steps == ()
        editor = Editor(pulled.groups, rng)
        self.file = GroupsFile(None, tuple(editor.edited(edits)))
        self.outside = editor.outside

    async def plan(self, file=None):
        return await compare(self.client, file or self.file, self.service.url, self.applied(), silent)

    async def apply(self):
        return await apply(self.client, await self.plan(), self.applied(), silent)

    def applied(self):
        return Applied.beside(self.path, self.service.url)

    def state(self):
        return state_of(self.service.tenant)

    def outside_state(self):
        names = {group.en_name for ident, group in self.service.tenant.groups.items() if ident in self.outside}
        return {name: state for name, state in self.state().items() if name in names}


async def with_desk(seed, edits, story):
    with tempfile.TemporaryDirectory() as folder:
        async with running_groups() as service, client_of(service) as client:
            desk = Desk(service, client, folder)
            await desk.open(seed, edits)
            return await story(desk)


async def applied_whole(desk):
    """Apply once; returns the state, and how many requests the steps took."""
    before = desk.outside_state()
    plan = await desk.plan()
    asked = len(desk.service.journal)
    outcome = await apply(desk.client, plan, desk.applied(), silent)
    asked = len(desk.service.journal) - asked
    assert outcome.complete, [(failure.step, failure.why) for failure in outcome.failures]
    assert (await desk.plan()).steps == ()
    assert desk.outside_state() == before
    return desk.state(), asked


def interrupted(after, acted):
    """Apply, lose the service after so many requests, and apply again."""

    async def story(desk):
        plan = await desk.plan()
        desk.service.break_after(after, acted=acted)
        await apply(desk.client, plan, desk.applied(), silent)
        desk.service.outage = None
        outcome = await desk.apply()
        assert outcome.complete, [(failure.step, failure.why) for failure in outcome.failures]
        assert (await desk.plan()).steps == ()
        return desk.state()

    return story


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1_000_000), edits=st.integers(1, 25), cut=st.floats(0, 1), acted=st.booleans())
def test_what_the_file_says_comes_true_and_nothing_else_also_after_an_interruption(seed, edits, cut, acted):
    async def story():
        state, asked = await with_desk(seed, edits, applied_whole)
        assert await with_desk(seed, edits, interrupted(int(cut * asked), acted)) == state

    asyncio.run(story())


async def test_interrupted_at_any_request_and_run_again_the_end_is_the_same():
    seed, edits = 7, 14
    state, asked = await with_desk(seed, edits, applied_whole)
    assert asked > 15
    for after in range(asked):
        for acted in (False, True):
            assert await with_desk(seed, edits, interrupted(after, acted)) == state, (after, acted)
