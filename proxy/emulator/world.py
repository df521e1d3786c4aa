"""The state behind the answers: balances, counters, what was stored, and how often each request was seen."""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.emulator.accounts import MEMBERS, ORGANIZATION
from proxy.emulator.answers import Answer, Refused, bad_parameter, json_answer, refusal, refused
from proxy.emulator.assumptions import PAUSE_AFTER, PAUSE_S
from proxy.emulator.clock import Clock, RealClock
from proxy.emulator.limits import RESERVATIONS, TOOL_LIMITS, Counters, Full, Limit
from proxy.emulator.messages import NO_CREDITS, RATE_LIMIT, TOOL_LIMIT
from proxy.emulator.money import units_of
from proxy.emulator.options import Options


@dataclass(frozen=True, slots=True)
class Call:
    """One authenticated request on a known path.

    parts:   the variable parts of the path, percent-decoded once.
    turn:    how often the same method, target and body was seen before; ids differ by it, texts do not.
    """

    method: str
    target: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    key: str
    member: str
    turn: int


@dataclass(slots=True)
class Job:
    """An operation that is polled to its end.

    result:  what a poll shows once it is over.
    charge:  what was taken at its start, given back if it fails.
    """

    model: str
    polls_left: int
    fails: bool
    charge: int
    result: dict[str, Any]

    @property
    def status(self) -> str:
        if self.polls_left > 0:
            return "processing"
        return "failed" if self.fails else "completed"


class World:
    """Everything one emulator remembers; `reset` makes it new. `origin` is its own URL, for links to content."""

    def __init__(self, options: Options, clock: Clock | None = None) -> None:
        self.options = options
        self.clock: Clock = clock or RealClock(options.time_scale)
        self.origin = ""
        self.reset()

    def reset(self) -> None:
        self.counters = Counters(self.options, self.clock)
        self.balances = dict.fromkeys(MEMBERS, units_of(self.options.credits))
        self.tool_calls: Counter[str] = Counter()
        self.turns: Counter[tuple[str, str, bytes]] = Counter()
        self.jobs: dict[tuple[str, str], Job] = {}
        self.shelf: dict[tuple[str, str], Any] = {}
        self.prefixes: dict[tuple[str, str], float] = {}
        self.failures: Counter[str] = Counter()
        self.paused_until_s: dict[str, float] = {}

    def turn(self, method: str, target: str, body: bytes) -> int:
        """How often this very request was seen before."""
        place = (method, target, hashlib.blake2b(body, digest_size=16).digest())
        self.turns[place] += 1
        return self.turns[place] - 1

    def limit(self, limit: Limit, group: str) -> None:
        """Count a request under one limit or raise its 429."""
        if self.counters.take([(limit, group)]):
            raise refused(RATE_LIMIT)

    def reserve(self, call: Call) -> None:
        """Let a credit-using call through, or raise 429 or 402."""
        self.limit(RESERVATIONS, call.member)
        if self.balances[call.member] <= 0:
            raise refused(NO_CREDITS)

    def reserve_tool(self, call: Call, suite: str) -> None:
        """Count a tools/call under all limits on tools, or raise 429 with a `Retry-After`."""
        groups = {"key": call.key, "org": ORGANIZATION, "suite": suite}
        full = self.counters.take([(limit, groups[limit.name.split("-")[0]]) for limit in TOOL_LIMITS])
        if full:
            raise Refused(tool_limit_answer(full))

    def start_job(self, call: Call, ident: str, job: Job) -> None:
        job.polls_left = self.options.jobs_polls
        self.jobs[call.member, ident] = job

    def job(self, call: Call, ident: str) -> Job:
        """The caller's operation. Without `?model=` it is 400; another model or another member's id is 404."""
        model = call.query.get("model")
        if not model:
            raise bad_parameter("The query parameter 'model' is required")
        job = self.jobs.get((call.member, ident))
        if job is None or job.model != model:
            raise Refused(json_answer({"detail": f"Operation '{ident}' not found"}, status=404))
        return job

    def poll(self, call: Call, ident: str) -> Job:
        """One poll brings an operation one step further; one that fails gives its credits back."""
        job = self.job(call, ident)
        was_open = job.polls_left > 0
        job.polls_left -= 1
        if was_open and job.status == "failed":
            self.balances[call.member] += job.charge
        return job

    def paused_for_s(self, suite: str) -> int:
        """Whole real seconds until a paused suite answers again, 0 when it is not paused."""
        left_s = self.paused_until_s.get(suite, 0.0) - self.clock.now_s()
        return max(0, math.ceil(left_s / self.clock.scale))

    def suite_answered(self, suite: str) -> None:
        self.failures[suite] = 0

    def suite_failed(self, suite: str) -> None:
        """A suite did not answer; too often in a row, and it is paused."""
        self.failures[suite] += 1
        if self.failures[suite] >= PAUSE_AFTER:
            self.failures[suite] = 0
            self.paused_until_s[suite] = self.clock.now_s() + PAUSE_S * self.clock.scale


def tool_limit_answer(full: Full) -> Answer:
    wait = str(max(1, math.ceil(full.wait_s)))
    return refusal(TOOL_LIMIT, headers=(("Retry-After", wait),), why=str(full.limit))
