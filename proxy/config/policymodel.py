"""What a policy file may say: one tree of models, and the words of the format that this version does not enforce yet.

Everything is strict: text is text, a number is a number, an unknown word is a problem. A misspelt limit must not
become no limit, and neither must one that is spelt right and not enforced.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from proxy.core.policy import Balance, ErrorForm, McpErrors, NativeVersion, StreamUsage, UnknownIds
from proxy.units import seconds_of

NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Names of teams and keys: they become labels, log fields and file names."""


def _duration(value: Any) -> Any:
    # pydantic shows the message of a ValueError; anything that is no text or number it judges itself.
    return seconds_of(value) if isinstance(value, str | int | float) else value


Name = Annotated[str, Field(strict=True, pattern=NAME)]
Duration = Annotated[float, BeforeValidator(_duration)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KeyModel(_Model):
    """sha256: hex digest of the whole virtual key."""

    id: Name
    sha256: Annotated[str, Field(strict=True, pattern=r"^[0-9A-Fa-f]{64}$")]


class TeamModel(_Model):
    keys: tuple[KeyModel, ...] = ()
    gateway_balance: Balance | None = None
    # Seconds. Beyond an hour every caller has long given up.
    wait_max: Annotated[Duration, Field(ge=0, le=3600)] | None = None


class FileModel(_Model):
    """One file. The files of a folder are merged; only `teams` may stand in several, each team in one."""

    teams: dict[Name, TeamModel] = Field(default_factory=dict)
    open_team: Name | None = None
    errors: ErrorForm | None = None
    mcp_errors: McpErrors | None = None
    stream_usage: StreamUsage | None = None
    native_version: NativeVersion | None = None
    unknown_ids: UnknownIds | None = None
    # Seconds. Below one it is noise; above ten minutes common time-outs have struck.
    heartbeat: Annotated[Duration, Field(ge=1, le=600)] | None = None


NOT_YET: Final[Mapping[type[BaseModel], frozenset[str]]] = {
    FileModel: frozenset({
        "budgets", "rates", "prices", "unpriced", "estimate", "cache", "aliases", "gateway_limits", "members",
        "expires_after",
    }),
    TeamModel: frozenset({"models", "deny_models", "suites", "tools", "chatbots", "weight", "cache"}),
    KeyModel: frozenset({"expires"}),
}  # fmt: skip
"""Words of the format that nothing acts on yet; refused by name, so that nobody relies on them."""


def model_at(steps: tuple[str | int, ...]) -> type[BaseModel]:
    """The model whose fields stand under these keys of a file."""
    match steps:
        case ("teams", _, "keys", *_):
            return KeyModel
        case ("teams", _, *_):
            return TeamModel
        case _:
            return FileModel
