"""One request on its way through the stages: what each stage learned, and nothing shared with another request."""

import time
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from proxy.core.body import Facts
from proxy.core.charges import NO_CHARGE, Charge, Ending
from proxy.core.facts import Facts as EntryFacts
from proxy.core.facts import facts_of
from proxy.core.head import Head
from proxy.core.holds import OpenHold
from proxy.core.jsonrpc import Call as RpcCall
from proxy.core.policy import Policy, Team
from proxy.core.pricing import Asked
from proxy.core.turns import Waiter
from proxy.server.heads import Known
from proxy.server.inbound import Inbound
from proxy.server.promises import Promised
from proxy.server.routes import Dialect, Match, Route
from proxy.server.sources import Source
from proxy.server.upstream import Outgoing
from proxy.units import Credits

if TYPE_CHECKING:
    from proxy.server.cache import Caching
    from proxy.server.in_flight import Slot
    from proxy.server.operations import Ended
    from proxy.server.recall import Place
    from proxy.stores.cache.contract import Entry


class Taker(Protocol):
    """Makes of a stream what its caller reads, in pieces that may go out as they come."""

    def feed(self, piece: bytes) -> bytes: ...

    def close(self) -> bytes: ...


@dataclass(slots=True)
class Call:
    """Filled in from left to right by the stages of `pipeline.STAGES`; read by `record` at the end.

    policy:   the one in force when the call came; a reload does not change a running call.
    named:    its id is its caller's, who may give it to others, too; else its hold has the same.
    dialect:  whose words the caller reads; the gateway's own until the route is known.
    known:    what its head came to, where the same head may come again.
    decoded:  the body as it was judged, and its tree, until the key of its answer is made.
    spare:    the hold this call would have taken, had it not joined another.
    slot:     the place claimed for an exchange that identical calls may share.
    promised: the idempotency key that the call holds while it runs.
    shared:   the answer is read from an exchange that others may read too.
    joined:   it was somebody else's call that fetched it.
    anew:     the joined call failed before a byte of it came, so this one began again.
    unsent:   nothing of it could be sent once, so it was tried again.
    alone:    neither joins nor offers a call.
    caching:  what was decided about keeping and giving the answer.
    stale:    a stored answer that is too old, for when the gateway fails.
    hit:      the stored answer that was given.
    why:      what a limit's refusal says.
    place:    knows the request again by its bytes.
    came:     the body as it came, of a request that is known again.
    wav:      the caller wants speech with a WAV header.
    taker:    takes out of the answer the usage that we asked for and the caller did not, or what it may not be told.
    alias:    the name of ours that the caller asked for and that stands for the model.
    asked:    what of the request its ceiling depends on.
    account:  the id that the books count the key under, where that is not its own.
    owns:     the id in the answer that was given to the team.
    credential: stands for the caller's own gateway key, "" where ours is used.
    work:     what the operation came to that this call asked after.
    tokens:   the most it may use.
    model, mcp: the model that the body names, and what an MCP body asks.
    taken_back: its caller has said that it does not wait any more.
    waiter:   the call as it asked for its turn.      resent: how often it went back to the queue.
    began_s, ended_s: monotonic.      at_s: wall clock.      held: units of 1e-8 credit.
    """

    id: str
    inbound: Inbound
    policy: Policy
    at_s: float
    named: bool = False
    began_s: float = field(default_factory=time.monotonic)
    ended_s: float = 0.0
    stage: str = "receive"
    known: Known | None = None
    head: Head | None = None
    match: Match | None = None
    route: Route | None = None
    dialect: Dialect = Dialect.GATEWAY
    team: Team | None = None
    key_id: str = ""
    account: str = ""
    gateway_key: str | None = None
    credential: str = ""
    body: bytes = b""
    decoded: "tuple[bytes, dict[str, Any] | None] | None" = None
    facts: Facts | None = None
    model: str | None = None
    mcp: RpcCall | None = None
    entry_facts: EntryFacts | None = None
    alias: str | None = None
    asked: Asked | None = None
    out: Outgoing | None = None
    cache_status: str = "sluicegate; fwd=bypass"
    cache_result: str = "bypass"
    caching: "Caching | None" = None
    stale: "Entry | None" = None
    hit: "Entry | None" = None
    place: "Place | None" = None
    came: bytes = b""
    hold: OpenHold | None = None
    spare: OpenHold | None = None
    source: Source | None = None
    slot: "Slot | None" = None
    promised: Promised | None = None
    shared: bool = False
    joined: bool = False
    anew: bool = False
    unsent: bool = False
    alone: bool = False
    status: int = 0
    ending: Ending | None = None
    reason: str = ""
    why: str = ""
    upstream_status: int = 0
    charge: Charge = NO_CHARGE
    work: "Ended | None" = None
    held: Credits = Credits(0)
    wav: bool = False
    taker: Taker | None = None
    owns: str | None = None
    tokens: int = 0
    waiter: Waiter | None = None
    resent: int = 0
    waited_s: float = 0.0
    first_byte_s: float | None = None
    sent_bytes: int = 0
    empty_answer: bool = False
    taken_back: bool = False

    def led(self, match: Match) -> None:
        """The route is known, or is another one from now on."""
        self.match, self.route, self.dialect = match, match.route, match.route.dialect

    def judged(self, facts: Facts) -> None:
        """The body was judged, or stands for something else from now on."""
        self.facts, self.model, self.mcp = facts, facts.model, facts.call

    @property
    def rpc_id(self) -> bytes | None:
        """The caller's JSON-RPC id as it was written."""
        return self.mcp.id if self.mcp else None

    @property
    def digest(self) -> bytes:
        """SHA-256 of the body; taken when it is asked for, which it is for few calls."""
        return (self.facts.digest if self.facts is not None else b"") or sha256(self.body).digest()

    @property
    def facts_for_books(self) -> EntryFacts:
        """What an entry of the ledger says of this call; asked for once the request is what it will be."""
        if self.entry_facts is not None:
            return self.entry_facts
        assert self.team is not None
        assert self.match is not None
        name, values = self.match.route.name, self.match.values
        suite = unquote(values["suite"]) if "suite" in values else None
        tool = None if self.mcp is None else self.mcp.tool
        model, chatbot = (None, values["id"]) if name == "chatbot" else (self.model, None)
        key = self.account or self.key_id
        self.entry_facts = facts_of((self.team.name, key, name, model, suite, tool, self.credential, chatbot))
        return self.entry_facts

    @property
    def native(self) -> bool:
        return self.dialect is Dialect.NATIVE
