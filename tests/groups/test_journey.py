"""Pull, edit, plan, apply, over random tenants and edits: what the file says comes true, and nothing else does."""

import asyncio
import random
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
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
    """A tenant, the file for it, and what somebody does with that. outside: ids of groups left out of the file."""

    def __init__(self, service, client, path, file, outside):
        self.service, self.client, self.path, self.file, self.outside = service, client, path, file, outside

    async def plan(self):
        return await compare(self.client, self.file, self.service.url, self.applied(), silent)

    async def apply(self):
        return await apply(self.client, await self.plan(), self.applied(), silent)

    def applied(self):
        return Applied.beside(self.path, self.service.url)

    def state(self):
        return state_of(self.service.tenant)

    def outside_state(self):
        names = {group.en_name for ident, group in self.service.tenant.groups.items() if ident in self.outside}
        return {name: state for name, state in self.state().items() if name in names}


class Journey:
    """A tenant made from a seed, pulled and edited once, and walked through as often as wanted."""

    def __init__(self, seed, edits):
        self.seed, self.edits = seed, edits
        self.file = None
        self.outside = set()

    async def walk(self, story):
        """What the story makes of a fresh tenant and the edited file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "groups.yaml"
            async with running_groups() as service, client_of(service) as client:
                rng = random.Random(self.seed)
                furnish(service.tenant, rng)
                if self.file is None:
                    await self._open(service, client, path, rng)
                return await story(Desk(service, client, path, self.file, self.outside))

    async def _open(self, service, client, path, rng):
        await pull(client, path, service.url, frozenset(Part), silent)
        pulled = read_file(path)
        assert (await Desk(service, client, path, pulled, ()).plan()).steps == ()
        editor = Editor(pulled.groups, rng)
        self.file = GroupsFile(None, tuple(editor.edited(self.edits)))
        self.outside = editor.outside


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


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1_000_000), edits=st.integers(1, 25), cut=st.floats(0, 1), acted=st.booleans())
@example(seed=35, edits=40, cut=0.5, acted=False)  # a switch of a new group was sent once and not again
def test_what_the_file_says_comes_true_and_nothing_else_also_after_an_interruption(seed, edits, cut, acted):
    async def story():
        journey = Journey(seed, edits)
        state, asked = await journey.walk(applied_whole)
        assert await journey.walk(interrupted(int(cut * asked), acted)) == state

    asyncio.run(story())


async def test_interrupted_at_any_request_and_run_again_the_end_is_the_same():
    journey = Journey(seed=20, edits=25)

    async def kinds(desk):
        return {type(step) for step in (await desk.plan()).steps}

    assert len(await journey.walk(kinds)) >= 9, "a plan with nearly every kind of step"
    state, asked = await journey.walk(applied_whole)
    for after in range(asked):
        for acted in (False, True):
            assert await journey.walk(interrupted(after, acted)) == state, (after, acted)
