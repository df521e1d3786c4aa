"""What a policy file may say: one tree of models.

Everything is strict: text is text, a number is a number, an unknown word is a problem. A misspelt limit must not
become no limit.
"""

from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

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
from proxy.units import Credits, credits_of, seconds_of

NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Names of teams and keys: they become labels, log fields and file names."""


def _duration(value: Any) -> Any:
    # pydantic shows the message of a ValueError; anything that is no text or number it judges itself.
    return seconds_of(value) if isinstance(value, str | int | float) else value


Name = Annotated[str, Field(strict=True, pattern=NAME)]
Duration = Annotated[
    float,
    BeforeValidator(_duration),
    WithJsonSchema({"type": ["number", "string"], "description": "Seconds, or text such as 500ms, 30s, 1h30m, 7d."}),
]


def _instant(value: Any) -> Any:
    """Seconds since the epoch. A day begins at its midnight in UTC; a time without a zone is UTC."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r} is no instant, such as 2027-01-31 or 2027-01-31T18:00:00+09:00") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise ValueError("expected an instant, such as 2027-01-31 or 2027-01-31T18:00:00+09:00")
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


Instant = Annotated[
    float,
    BeforeValidator(_instant),
    WithJsonSchema({"type": "string", "description": "Such as 2027-01-31 or 2027-01-31T18:00:00+09:00."}),
]
Digest = Annotated[str, Field(strict=True, pattern=r"^[0-9A-Fa-f]{64}$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeyModel(_Model):
    """sha256: hex digest of the whole virtual key. expires: the instant from which on it is refused."""

    id: Name
    sha256: Digest
    expires: Instant | None = None


def _amount(value: Any) -> Any:
    """Credits from a whole number or from text; a number with a point has been rounded by the reader already."""
    if isinstance(value, bool) or value is None:
        raise ValueError("expected an amount of credits, such as 3000 or 0.25")
    if isinstance(value, float):
        # The YAML reader keeps the digits as they were written.
        value = str(value)
    if isinstance(value, int | str):
        return credits_of(str(value))
    return value


def _zone(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError('expected the name of a time zone, such as "Asia/Seoul"')
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{value!r} is no time zone, such as Asia/Seoul") from None


def _ids(value: Any) -> Any:
    return [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in value] \
        if isinstance(value, list | tuple) else value  # fmt: skip


Amount = Annotated[
    Credits,
    BeforeValidator(_amount),
    WithJsonSchema({"type": ["number", "string"], "description": "Credits, such as 3000 or 0.25; at least 0."}),
]
Zone = Annotated[
    Any,
    BeforeValidator(_zone),
    WithJsonSchema({"type": "string", "description": "Such as Asia/Seoul; UTC if left out."}),
]
Glob = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Globs = tuple[Glob, ...]
_ID_SCHEMA: Final = {"type": ["string", "integer"]}
Ids = Annotated[Globs, BeforeValidator(_ids), WithJsonSchema({"type": "array", "items": _ID_SCHEMA})]
IdGlob = Annotated[
    Glob, BeforeValidator(lambda value: str(value) if type(value) is int else value), WithJsonSchema(_ID_SCHEMA)
]
Share = Annotated[float, Field(gt=0, le=1)]
Tokens = Annotated[int, Field(strict=True, ge=1, le=100_000_000)]


ToolAlias = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]|_[A-Za-z0-9-])*$", max_length=64)]
"""Two underscores stand between suite and tool in the names that are made."""
SuiteTool = Annotated[str, Field(strict=True, pattern=r"^[^.\s]+\..+$", max_length=200)]


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
    # Of the tenant's member groups, by id or by name in either language.
    group: Annotated[int, Field(strict=True, ge=1)] | Annotated[str, Field(strict=True, min_length=1)] | None = None
    # Seconds. Beyond an hour every caller has long given up.
    wait_max: Annotated[Duration, Field(ge=0, le=3600)] | None = None
    # Share against other teams where they compete for turns.
    weight: Annotated[float, Field(gt=0, le=1000)] = 1.0


class MatchModel(_Model):
    """All given words have to fit; model and tool are globs."""

    team: Name | None = None
    key: Name | None = None
    model: Glob | None = None
    route: Glob | None = None
    suite: Glob | None = None
    tool: Glob | None = None
    chatbot: IdGlob | None = None


class RateMatchModel(MatchModel):
    """What calls on their way have besides what an entry of the ledger keeps of them."""

    method: Glob | None = None
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
    warn_at: tuple[Share, ...] = ()
    shadow: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _one_window(self) -> "BudgetModel":
        if (self.per is None) == (self.within is None):
            raise ValueError("say either per (hour, day, week, month, total) or within (such as 24h)")
        if self.timezone is not None and self.per is None:
            raise ValueError("timezone goes with per; a sliding window has none")
        if self.amounts and self.each is None:
            raise ValueError("amounts goes with each: it names single values of it")
        if self.excess is Excess.WAIT:
            raise ValueError("a budget cannot wait: say refuse or warn")
        if self.each is Each.MEMBER:
            raise ValueError("a budget knows no members: say each: credential")
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
        if sum(given is not None for given in (self.requests, self.tokens, self.in_flight)) != 1:
            raise ValueError("say exactly one of requests, tokens and in_flight")
        if (self.within is None) == (self.in_flight is None):
            raise ValueError("requests and tokens are counted within a time (such as 60s), in_flight is not")
        if self.amounts and self.each is None:
            raise ValueError("amounts goes with each: it names single values of it")
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
        if sum(name is not None for name in (self.models, self.chatbots, self.suites)) != 1:
            raise ValueError("name exactly one of models, chatbots and suites")
        if not any(getattr(self, name) is not None for name in PRICED):
            raise ValueError("says no price")
        return self


PRICED: Final = (
    "input_per_million", "output_per_million", "per_image", "per_video", "per_call",
)  # fmt: skip


class UnpricedModel(_Model):
    hold: Amount


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
    unpriced: Literal["refuse"] | UnpricedModel | None = None
    estimate: Estimate | None = None
    aliases: dict[Glob, Glob] = Field(default_factory=dict)
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
        case _:
            return FileModel
