"""Which calls may be answered from the cache, why or why not, and which answers may be kept. Pure.

A request is deterministic when the same question has the same answer and asking it leaves nothing behind. What is not
deterministic is kept only where a rule of the policy names it; what reads or writes state at the gateway never is.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import orjson

from proxy.core.answers import End, Family
from proxy.core.body import Facts as Body
from proxy.core.facts import Facts
from proxy.core.limits import Match
from proxy.core.operations import Work, work
from proxy.core.toollist import CALL, LIST, Definition
from proxy.core.usage import Meter

DAY_S: Final = 86_400.0

LISTS: Final = frozenset({"models", "model", "native-models", "native-model", "suites"})
"""Routes that ask what there is, without a body."""

_ASKING: Final = frozenset({"chat", "native", "responses", "native-count"})
"""Routes whose body can say that its answer is deterministic."""

_ACTS: Final = frozenset({"videos", "cancel"})
"""Routes whose every call begins work at the gateway, or ends some; one that asks the same means its own."""

_STATEFUL: Final = frozenset({"store", "background", "previous_response_id", "conversation", "references"})


@dataclass(frozen=True, slots=True)
class CacheRule:
    """How long answers to some calls are kept; the first rule that takes a call decides.

    method:           of MCP calls, None for any call.
    deterministic:    True: only deterministic calls; None: whether or not they are.
    ttl_s:            seconds an answer is fresh; 0: such calls are not kept.
    stale_if_error_s: seconds beyond, in which it is given when the gateway fails.
    source:           file:line:col, "" for a built-in one.
    """

    match: Match = Match()
    routes: frozenset[str] | None = None
    method: str | None = None
    deterministic: bool | None = None
    ttl_s: float = 0.0
    stale_if_error_s: float = 0.0
    source: str = ""

    def takes(self, facts: Facts, *, deterministic: bool, method: str | None = None) -> bool:
        """Whether the rule is about a call."""
        if self.method is not None and self.method != method:
            return False
        if self.deterministic is not None and self.deterministic is not deterministic:
            return False
        return (self.routes is None or facts.route in self.routes) and self.match.takes(facts)


BUILT_IN: Final = (
    CacheRule(deterministic=True, ttl_s=DAY_S),
    CacheRule(routes=frozenset({"suites"}), ttl_s=60.0, stale_if_error_s=600.0),
    CacheRule(routes=LISTS, ttl_s=60.0),
    CacheRule(method=LIST, ttl_s=60.0, stale_if_error_s=600.0),
)
"""What holds after the rules of the policy: a repeated deterministic call is free for a day."""


class Decision(NamedTuple):
    """Whether a call may be answered from the cache.

    detail: why not, in one word for `Cache-Status`; for a call that may, what makes it so.
    """

    may: bool
    detail: str
    ttl_s: float = 0.0
    stale_if_error_s: float = 0.0
    source: str = ""


def decide(
    facts: Facts, body: Body | None, rules: Sequence[CacheRule], definition: Definition | None = None
) -> Decision:
    """May the answer to this call be kept, and for how long?

    definition: of the tool that is called, as its suite last listed it.
    """
    if facts.suite is not None:
        return _of_suite(facts, None if body is None or body.call is None else body.call.method, rules, definition)
    route = facts.route
    if route in _ACTS:
        return _no("operation")
    why_not = reason_against(route, body)
    if why_not in _STATEFUL:
        return _no(why_not)
    # No built-in rule is about a question that may be answered otherwise the next time.
    for rule in rules if why_not and route in _ASKING else (*rules, *BUILT_IN):
        if rule.takes(facts, deterministic=not why_not):
            if rule.ttl_s <= 0:
                return Decision(False, "policy", source=rule.source)
            said = "rule" if why_not else "list" if route in LISTS else "deterministic"
            return _yes(said, rule.ttl_s, rule.stale_if_error_s, rule.source)
    return _no(why_not or "route")


@cache
def _no(why_not: str) -> Decision:
    """One for each word that says why a call may not."""
    return Decision(False, why_not)


@lru_cache(maxsize=256)
def _yes(said: str, ttl_s: float, stale_if_error_s: float, source: str) -> Decision:
    """One for each rule."""
    return Decision(True, said, ttl_s, stale_if_error_s, source)


def _of_suite(facts: Facts, method: str | None, rules: Sequence[CacheRule], definition: Definition | None) -> Decision:
    """Lists of tools are kept unless a rule says otherwise; calls only where a rule names the tool."""
    if method not in (LIST, CALL):
        return Decision(False, "mcp")
    for rule in (*rules, *BUILT_IN):
        names_tool = rule.match.tool is not None
        if names_tool is not (method == CALL) or not rule.takes(facts, deterministic=False, method=method):
            continue
        if rule.ttl_s <= 0:
            return Decision(False, "policy", source=rule.source)
        if method == CALL and definition is None:
            return Decision(False, "unlisted", source=rule.source)
        if method == CALL and definition is not None and definition.changes:
            return Decision(False, "not-read-only", source=rule.source)
        said = "list" if method == LIST else "rule"
        return _yes(said, rule.ttl_s, rule.stale_if_error_s, rule.source)
    return Decision(False, "mcp")


def reason_against(route: str, body: Body | None) -> str:
    """What keeps a call from being deterministic; "" for one that is."""
    if route not in _ASKING or body is None:
        return "route"
    if body.stored:
        return "store"
    if body.background:
        return "background"
    if body.previous_response_id is not None:
        return "previous_response_id"
    if body.conversation:
        return "conversation"
    if body.references:
        return "references"
    if route == "native-count":
        return ""
    if body.n != 1:
        return "n"
    return "" if body.temperature_zero or (body.seeded and route in _SEEDED) else "temperature"


# --- which answers are kept ---

_SIGNED: Final = re.compile(
    rb"(?:[?&]|\\u0026|&amp;)(?:X-Amz-Signature|X-Goog-Signature|Signature|sig|se|Expires|token)=", re.IGNORECASE
)
"""What links carry that work for a while only: an answer with one in it would be kept longer than it is true.

Some encoders of JSON write `&` as `\\u0026`, and links inside HTML have `&amp;`.
"""

_SEEDED: Final = frozenset({"chat", "chatbot"})
"""Routes whose format has a `seed`; a gateway that does not know the word answers as it likes."""

_ANSWERS: Final = (Family.CHAT, Family.MESSAGES, Family.RESPONSES)

# fmt: off
_WORK: Final[Mapping[str, tuple[bool, frozenset[Work | None]]]] = {
    # route       may name it    where the work has to stand; None: nothing is said
    "images":    (False,         frozenset({None, Work.DONE})),
    "image":     (True,          frozenset({Work.DONE})),
    "video":     (True,          frozenset({Work.DONE})),
    "responses": (True,          frozenset({Work.DONE})),
    "response":  (True,          frozenset({Work.DONE})),
}
# fmt: on
"""Routes whose answers may tell of work that goes on behind them, and what such an answer says when it is kept.

What is true for now only is asked for again, and so is what hands out the id of work, which is one call's alone.
A poll repeats the id that it asks about, which was checked before anything stored is looked for.
"""

_NOT_WHOLE: Final = (End.CUT, End.ERROR, End.CANCELLED, End.EOF_AFTER_FINISH)
"""Looked through by identity: the hash of such a member takes as long as a call."""


SEARCHED_MAX: Final = 1024 * 1024
"""Bytes of a stream whose text is put together to look for links; longer ones are not kept."""


_PARTIAL: Final = frozenset({204, 205, 206})
"""Statuses of answers that have no body, or part of one."""


def keepable(
    route: str, status: int, meter: Meter | None, body: bytes, *, is_json: bool, streamed: bool = False
) -> bool:
    """Whether an answer that was read to its end is complete, says something other than no, and stays true.

    meter:    None on routes whose answers carry no usage; then the body has to be JSON with something in it.
    streamed: a stream was asked for; whoever asks for one is not given anything else.
    """
    if not 200 <= status < 300 or status in _PARTIAL or not body:
        return False
    if meter is not None:
        if meter.end in _NOT_WHOLE or meter.failure is not None or meter.empty_answer or meter.refused:
            return False
        if meter.family in _ANSWERS and (meter.streamed != streamed or not meter.said_why_it_ended):
            return False
    elif is_json and not _says_something(body):
        return False
    if route in _WORK and not _is_over(meter, *_WORK[route]):
        return False
    # Looking for a sign first is much quicker than looking for what may stand before it.
    if body.find(b"=") >= 0 and _SIGNED.search(body) is not None:
        return False
    return meter is None or not meter.streamed or not _signed_in_pieces(body)


def _is_over(meter: Meter | None, may_name: bool, over: frozenset[Work | None]) -> bool:
    """Whether an answer tells of no work that goes on; one whose work may, and that is not read, might."""
    if meter is None or (meter.response_id is not None and not may_name):
        return False
    return (None if meter.status is None else work(meter.status)) in over


def _signed_in_pieces(stream: bytes) -> bool:
    """Whether the text that a stream's events make together has such a link; no event alone need show it."""
    if len(stream) > SEARCHED_MAX:
        return True
    texts: dict[str, list[str]] = {}
    for line in stream.splitlines():
        if line.startswith(b"data:") and line[5:].lstrip().startswith(b"{"):
            try:
                _gather(orjson.loads(line[5:]), texts)
            except orjson.JSONDecodeError:
                return True
    return any(_SIGNED.search("".join(pieces).encode("utf-8", "surrogatepass")) for pieces in texts.values())


def _gather(tree: Any, texts: dict[str, list[str]]) -> None:
    """All text of a decoded event, by the names it stands under."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += reversed(node)
            continue
        for name, value in node.items() if isinstance(node, dict) else ():
            if isinstance(value, str):
                texts.setdefault(name, []).append(value)
            else:
                waiting.append(value)


def _says_something(body: bytes) -> bool:
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return bool(tree) and not (isinstance(tree, dict) and ("error" in tree or "detail" in tree))
