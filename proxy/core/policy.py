"""The rules that callers live under: one immutable value, swapped whole.

Policy files are read by `config/policyfile.py`; here is what they come to. Only what this version enforces has a field.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from proxy.core.deterministic import CacheRule
from proxy.core.limits import Budget, Rate
from proxy.core.names import fits, read_as
from proxy.core.prices import PriceTable
from proxy.core.pricing import Estimate
from proxy.units import Credits


class ErrorForm(Enum):
    """HYBRID: every error carries the body all SDKs show; PASSTHROUGH: the gateway's error bodies as they came."""

    HYBRID = "hybrid"
    PASSTHROUGH = "passthrough"


class McpErrors(Enum):
    """How refusals look on MCP POSTs."""

    JSONRPC = "jsonrpc"
    HTTP = "http"
    TOOL_RESULT = "tool_result"


class McpNewer(Enum):
    """What becomes of MCP requests of the revision 2026-07-28. REFUSE: their clients go on with an older one."""

    REFUSE = "refuse"
    BRIDGE = "bridge"


class StreamUsage(Enum):
    """INJECT: ask the gateway for the usage chunk where the caller did not, and take it out again."""

    AS_ASKED = "as-asked"
    INJECT = "inject"


class NativeVersion(Enum):
    """PIN: the documented version goes upstream whatever the caller sent."""

    PIN = "pin"
    PASS = "pass"


class UnknownIds(Enum):
    """What happens with an operation or response id that no team here has been given."""

    REFUSE = "refuse"
    PASS = "pass"


class RateHeaders(Enum):
    """Whether answers tell how much of the tightest rate is left."""

    SHOW = "show"
    HIDE = "hide"


class Storms(Enum):
    """HOLD: a refusal is waited out or told from memory; PASS: each goes to its caller, each repeat to the gateway."""

    HOLD = "hold"
    PASS = "pass"


class Balance(Enum):
    """Whether a team sees the gateway's balance."""

    SHOW = "show"
    HIDE = "hide"


class CacheScope(Enum):
    """Whose answers a team is given: its own, those of every team that shares, or none."""

    TEAM = "team"
    SHARED = "shared"
    OFF = "off"


class Steering(Enum):
    """Whether a caller's `Cache-Control` counts."""

    HONOUR = "honour"
    IGNORE = "ignore"


EXPIRES_AFTER_S: Final = 7200.0
"""Work that has not ended after two hours never will, and was charged for all we know."""

WAIT_MAX_S: Final = 30.0
"""Longest wait for a turn unless a team says otherwise: SDKs give up after minutes, people after half of one."""


@dataclass(frozen=True, slots=True)
class KeyRef:
    """A virtual key as the policy knows it.

    sha256:    digest of the whole key, 32 bytes.
    expires_s: seconds since the epoch from which on it is refused, None for never.
    """

    id: str
    sha256: bytes
    expires_s: float | None = None


@dataclass(frozen=True, slots=True)
class Team:
    """Whom a budget belongs to. gateway_balance None: shown in open mode only.

    models, deny_models: globs on the requested id; models None: all.
    suites, chatbots:    names and ids; None: all.
    group: of the tenant's member groups, by id or name: its quota is a ceiling of the team.
    tools, deny_tools:   globs on `suite.tool`; tools None: all.
    weight:              share against other teams where they compete for turns.
    """

    name: str
    keys: tuple[KeyRef, ...] = ()
    gateway_balance: Balance | None = None
    wait_max_s: float = WAIT_MAX_S
    models: tuple[str, ...] | None = None
    deny_models: tuple[str, ...] = ()
    suites: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    deny_tools: tuple[str, ...] = ()
    chatbots: tuple[str, ...] | None = None
    cache: CacheScope = CacheScope.TEAM
    cache_control: Steering = Steering.HONOUR
    group: int | str | None = None
    weight: float = 1.0

    def may_use_model(self, model: str | None) -> bool:
        return _may(model, self.models, self.deny_models)

    def may_use_suite(self, suite: str) -> bool:
        return self.suites is None or suite in self.suites

    def may_use_tool(self, suite: str, tool: str) -> bool:
        return _may(f"{suite}.{tool}", self.tools, self.deny_tools)

    @property
    def may_use_every_tool(self) -> bool:
        """Whether nothing has to be left out of a list of tools."""
        return self.tools is None and not self.deny_tools

    def may_use_chatbot(self, chatbot: str) -> bool:
        return self.chatbots is None or chatbot in self.chatbots

    def sees_balance(self, *, open_auth: bool) -> bool:
        return open_auth if self.gateway_balance is None else self.gateway_balance is Balance.SHOW


def _may(name: str | None, allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> bool:
    if denied and any(read_as(pattern, name) for pattern in denied):
        return False
    return allowed is None or any(fits(pattern, name) for pattern in allowed)


@dataclass(frozen=True, slots=True)
class Policy:
    """All rules.

    teams:       by name.
    open_team:   name of the team of callers without a virtual key, None when there is none.
    unknown_ids: None: passed where callers are not told apart or bring their own gateway key, else refused.
    heartbeat_s: seconds of silence after which a stream gets a comment line, None for never.
    expires_after_s: age at which an operation that does not end is charged at its hold, after one last question.
    unpriced_hold: what a call without a price holds, in units of 1e-8 credit; None: refused where a budget counts it.
    aliases:     model names of ours and what they stand for.
    tool_aliases: names of ours for tools where those of all suites are listed, and the `suite.tool` each stands for.
    cache:       rules of what is kept, in their order; the built-in ones follow.
    digest:      of the files it was read from, "" where it was not read from files.
    sources:     file:line:col of teams (`team NAME`), aliases (`alias NAME`) and switches (their word).
    members:     member by credential, as `credential_of` names gateway keys; others are a member each.
    """

    teams: Mapping[str, Team]
    open_team: str | None = None
    errors: ErrorForm = ErrorForm.HYBRID
    mcp_errors: McpErrors = McpErrors.JSONRPC
    mcp_newer: McpNewer = McpNewer.REFUSE
    stream_usage: StreamUsage = StreamUsage.AS_ASKED
    native_version: NativeVersion = NativeVersion.PIN
    unknown_ids: UnknownIds | None = None
    heartbeat_s: float | None = None
    expires_after_s: float = EXPIRES_AFTER_S
    budgets: tuple[Budget, ...] = ()
    prices: PriceTable = field(default_factory=PriceTable)
    unpriced_hold: Credits | None = None
    estimate: Estimate = Estimate.BYTES
    aliases: Mapping[str, str] = field(default_factory=dict)
    tool_aliases: Mapping[str, str] = field(default_factory=dict)
    cache: tuple[CacheRule, ...] = ()
    digest: str = field(default="", compare=False)
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    rates: tuple[Rate, ...] = ()
    members: Mapping[str, str] = field(default_factory=dict)
    rate_headers: RateHeaders = RateHeaders.SHOW
    storms: Storms = Storms.HOLD
    _by_digest: Mapping[bytes, tuple[KeyRef, Team]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert self.open_team is None or self.open_team in self.teams
        by_digest = {key.sha256: (key, team) for team in self.teams.values() for key in team.keys}
        object.__setattr__(self, "_by_digest", by_digest)

    def team_of_key(self, secret: str, at_s: float) -> tuple[Team, str] | None:
        """The team and the id of a virtual key, None for an unknown or expired one; the work is the same either way.

        The table is asked by digest, which tells a caller nothing about how near a guess came; the comparison of the
        whole digest guards against a table that would ever be keyed by less.
        """
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        key, team = self._by_digest.get(digest, _NOBODY)
        expired = key.expires_s is not None and key.expires_s <= at_s
        if hmac.compare_digest(digest, key.sha256) and team is not _NOBODY[1] and not expired:
            return team, key.id
        return None

    def team_of_open(self) -> Team | None:
        """The team of callers without a virtual key."""
        return None if self.open_team is None else self.teams[self.open_team]

    @property
    def weights(self) -> Mapping[str, float]:
        """What each team weighs where they compete for turns."""
        return {name: team.weight for name, team in self.teams.items()}

    def passes_unknown_ids(self, *, open_auth: bool, callers_bring_keys: bool) -> bool:
        if self.unknown_ids is None:
            return open_auth or callers_bring_keys
        return self.unknown_ids is UnknownIds.PASS


def credential_of(gateway_key: str) -> str:
    """What stands for a caller's gateway key in facts and members: the first digits of its digest."""
    return credential_of_digest(hashlib.sha256(gateway_key.encode("utf-8", "surrogatepass")).hexdigest())


def credential_of_digest(digest: str) -> str:
    """The same, from the digest in hexadecimal digits."""
    return digest[:12].lower()


_NOBODY: Final = (KeyRef("", bytes(32)), Team(""))
"""Stands in for an unknown key, so that its comparison is made all the same."""

DEFAULT_POLICY: Final = Policy(teams={"default": Team("default")}, open_team="default")
"""What holds without policy files: one team, no keys, no limits of ours."""
