"""What a policy file may say: one tree of models.

Everything is strict: text is text, a number is a number, an unknown word is a problem. A misspelt limit must not
become no limit.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from proxy.config.policyvalues import (
    Amount,
    Digest,
    Duration,
    Glob,
    Globs,
    Group,
    IdGlob,
    Ids,
    Instant,
    LiteralId,
    Literally,
    Method,
    Name,
    Route,
    Shares,
    SuiteTool,
    Tokens,
    ToolAlias,
    Zone,
    hold_or_refuse,
)
from proxy.core.limits import Each, Excess
from proxy.core.policy import (
    Balance,
    CacheScope,
    ErrorForm,
    McpErrors,
    McpNewer,
    NativeVersion,
    RateHeaders,
    Steering,
    Storms,
    StreamUsage,
    UnknownIds,
)
from proxy.core.pricing import Estimate
from proxy.core.windows import Per
from proxy.units import listed


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeyModel(_Model):
    """sha256: hex digest of the whole virtual key. expires: the instant from which on it is refused."""

    id: Name
    sha256: Digest
    expires: Instant | None = None


def _say(*sentences: str | Literal[False]) -> None:
    """Raise ValueError with all that hold."""
    if found := [sentence for sentence in sentences if sentence]:
        raise ValueError("; ".join(found))


class ToolsModel(_Model):
    allow: Globs | None = None
    deny: Globs = ()


class TeamModel(_Model):
    keys: tuple[KeyModel, ...] = ()
    models: Globs | None = None
    deny_models: Globs = ()
    suites: Globs | None = None
    tools: ToolsModel = ToolsModel()
    chatbots: Ids | None = None
    gateway_balance: Balance | None = None
    cache: CacheScope = CacheScope.TEAM
    cache_control: Steering = Steering.HONOUR
    group: Group | None = None
    # Seconds. Beyond an hour every caller has long given up.
    wait_max: Annotated[Duration, Field(ge=0, le=3600)] | None = None
    # Share against other teams where they compete for turns.
    weight: Annotated[float, Field(strict=True, gt=0, le=1000)] = 1.0


class MatchModel(_Model):
    """All given words have to fit; model and tool are globs."""

    team: Name | None = None
    key: Name | None = None
    model: Glob | None = None
    route: Route | None = None
    suite: Literally | None = None
    tool: Glob | None = None
    chatbot: LiteralId | None = None


class RateMatchModel(MatchModel):
    """What calls on their way have besides what an entry of the ledger keeps of them."""

    method: Method | None = None
    reserves: Annotated[bool, Field(strict=True)] | None = None
    spends: Annotated[bool, Field(strict=True)] | None = None


class BudgetModel(_Model):
    """A ceiling on credits, per calendar window or within a sliding one."""

    name: Name
    credits: Amount
    per: Per | None = None
    within: Annotated[Duration, Field(ge=1, le=31_622_400)] | None = None
    timezone: Zone = None
    match: MatchModel = MatchModel()
    each: Each | None = None
    amounts: dict[Name, Amount] = Field(default_factory=dict)
    instead_of: Name | None = None
    excess: Excess = Excess.REFUSE
    warn_at: Shares = ()
    shadow: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _one_window(self) -> "BudgetModel":
        _say(
            (self.per is None) == (self.within is None)
            and "say either per (hour, day, week, month, total) or within (such as 24h)",
            self.timezone is not None and self.per is None and "timezone goes with per; a sliding window has none",
            bool(self.amounts) and self.each is None and "amounts goes with each: it names single values of it",
            self.excess is Excess.WAIT and "a budget cannot wait: say refuse or warn",
            self.each is Each.MEMBER and "a budget knows no members: say each: credential",
        )
        return self


# Nobody gets a turn of nothing, however long it waits: who may not call is said by allow and deny lists.
Amounts = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]


class RateModel(_Model):
    """A limit on calls or tokens within a sliding window, or on calls that are open at once."""

    name: Name
    requests: Amounts | None = None
    tokens: Amounts | None = None
    in_flight: Amounts | None = None
    within: Annotated[Duration, Field(gt=0, le=31_622_400)] | None = None
    match: RateMatchModel = RateMatchModel()
    each: Each | None = None
    amounts: dict[Name, Amounts] = Field(default_factory=dict)
    instead_of: Name | None = None
    excess: Excess = Excess.WAIT
    shadow: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _one_kind(self) -> "RateModel":
        kinds = sum(given is not None for given in (self.requests, self.tokens, self.in_flight))
        _say(
            kinds != 1 and "say exactly one of requests, tokens and in_flight",
            kinds == 1
            and (self.within is None) == (self.in_flight is None)
            and "requests and tokens are counted within a time (such as 60s), in_flight is not",
            bool(self.amounts) and self.each is None and "amounts goes with each: it names single values of it",
        )
        return self


class CacheMatchModel(MatchModel):
    """deterministic: only calls whose answer is the same each time, or only those whose answer is not."""

    method: Literal["tools/list", "tools/call"] | None = None
    deterministic: Annotated[bool, Field(strict=True)] | None = None


class CacheModel(_Model):
    """How long answers to some calls are kept; a ttl of 0s keeps none."""

    match: CacheMatchModel
    ttl: Annotated[Duration, Field(ge=0, le=31_622_400)]
    stale_if_error: Annotated[Duration, Field(ge=0, le=31_622_400)] = 0.0


class PriceModel(_Model):
    """What the calls that one glob names cost."""

    models: Glob | None = None
    chatbots: IdGlob | None = None
    suites: Glob | None = None
    input_per_million: Amount | None = None
    output_per_million: Amount | None = None
    cached_input_per_million: Amount | None = None
    cache_write_per_million: Amount | None = None
    per_image: Amount | None = None
    per_video: Amount | None = None
    per_call: Amount | None = None
    output_tokens_max: Tokens | None = None
    part_tokens: Tokens | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "PriceModel":
        kinds = [word for word in ("models", "chatbots", "suites") if getattr(self, word) is not None]
        said = [word for word in PRICED if getattr(self, word) is not None]
        for_calls = len(kinds) == 1 and kinds != ["models"]
        text = [word for word in _TEXT if getattr(self, word) is not None]
        beside = [word for word in _BESIDE if getattr(self, word) is not None]
        _say(
            len(kinds) != 1 and "name exactly one of models, chatbots and suites",
            not said and "says no price",
            for_calls
            and bool(said)
            and [*said, *beside] != ["per_call"]
            and f"{kinds[0]} are priced by the call: say per_call, and leave out "
            + listed(word for word in (*said, *beside) if word != "per_call"),
            not for_calls
            and len(text) == 1
            and f"says {text[0]} alone, and the other would be free: say {_TEXT[1 - _TEXT.index(text[0])]} too, 0 where"
            " it costs nothing (as the output of speech does)",
            not for_calls
            and bool(said)
            and not text
            and bool(beside)
            and f"{listed(beside)} goes with input_per_million and output_per_million",
        )
        return self


_TEXT: Final = ("input_per_million", "output_per_million")
_BESIDE: Final = ("cached_input_per_million", "cache_write_per_million")
PRICED: Final = (
    "input_per_million", "output_per_million", "per_image", "per_video", "per_call",
)  # fmt: skip


class UnpricedModel(_Model):
    hold: Amount


_UNPRICED: Final = {
    "anyOf": [
        {"const": "refuse"},
        {
            "type": "object",
            "properties": {"hold": {"type": ["number", "string"]}},
            "required": ["hold"],
            "additionalProperties": False,
        },
    ]
}
"""As a schema; `refuse` is None in the model."""


class FileModel(_Model):
    """One file. The files of a folder are merged; only `teams` may stand in several, each team in one."""

    teams: dict[Name, TeamModel] = Field(default_factory=dict)
    open_team: Name | None = None
    errors: ErrorForm | None = None
    mcp_errors: McpErrors | None = None
    mcp_newer: McpNewer | None = None
    stream_usage: StreamUsage | None = None
    native_version: NativeVersion | None = None
    unknown_ids: UnknownIds | None = None
    # Seconds. Below one it is noise; above ten minutes common time-outs have struck.
    heartbeat: Annotated[Duration, Field(ge=1, le=600)] | None = None
    # Seconds. No video takes less than a minute, and no vendor keeps one for longer than a month.
    expires_after: Annotated[Duration, Field(ge=60, le=2_592_000)] | None = None
    # own: the gateway's limits are those of these files, not the built-in ones.
    gateway_limits: Literal["built-in", "own"] | None = None
    # Gateway keys of one member, by digest, where callers bring their own.
    members: dict[Name, tuple[Digest, ...]] = Field(default_factory=dict)
    rate_headers: RateHeaders | None = None
    storms: Storms | None = None
    budgets: tuple[BudgetModel, ...] = ()
    rates: tuple[RateModel, ...] = ()
    prices: tuple[PriceModel, ...] = ()
    unpriced: Annotated[UnpricedModel | None, BeforeValidator(hold_or_refuse), WithJsonSchema(_UNPRICED)] = None
    estimate: Estimate | None = None
    aliases: dict[Literally, Literally] = Field(default_factory=dict)
    # Names of ours for tools where those of all suites are listed, and the suite.tool each stands for.
    tool_aliases: dict[ToolAlias, SuiteTool] = Field(default_factory=dict)
    cache: tuple[CacheModel, ...] = ()


def model_at(steps: tuple[str | int, ...]) -> type[BaseModel]:
    """The model whose fields stand under these keys of a file."""
    match steps:
        case ("teams", _, "keys", *_):
            return KeyModel
        case ("teams", _, "tools", *_):
            return ToolsModel
        case ("budgets", _, "match", *_):
            return MatchModel
        case ("rates", _, "match", *_):
            return RateMatchModel
        case ("budgets", _, *_):
            return BudgetModel
        case ("cache", _, "match", *_):
            return CacheMatchModel
        case ("cache", _, *_):
            return CacheModel
        case ("rates", _, *_):
            return RateModel
        case ("prices", _, *_):
            return PriceModel
        case ("teams", _, *_):
            return TeamModel
        case ("unpriced", *_):
            return UnpricedModel
        case _:
            return FileModel
