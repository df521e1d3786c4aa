"""How this process runs: one table of settings and the value they become.

`SETTINGS` drives flags, environment, `sluicegate.yaml`, defaults, `--help` and the README. What callers may do is not
here but in the policies. Where the values come from is the matter of `config/sources.py`.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from proxy.config import values
from proxy.config.secret import Secret
from proxy.config.values import Address, BaseUrl, Reader, count, duration, size, word


class Credential(Enum):
    """Whose key the gateway sees."""

    PROXY = "proxy"
    CALLER = "caller"


class Auth(Enum):
    """Whether callers show a virtual key."""

    KEYS = "keys"
    OPEN = "open"


class Durability(Enum):
    FULL = "full"
    NORMAL = "normal"


class TenantRelay(Enum):
    """What the admin listener relays to the member-group service."""

    OFF = "off"
    READ = "read"
    WRITE = "write"


class AlertFormat(Enum):
    """JSON: everything that is known; SLACK: a text, as Slack and those who read its form take it."""

    JSON = "json"
    SLACK = "slack"


class LogFormat(Enum):
    """AUTO is CONSOLE on a terminal, else JSON."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class LogLevel(Enum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table.

    name:       field of `Settings` and key in the file.
    section:    heading in `--help` and the README.
    read:       turns what was written into the value; raises ValueError.
    default:    as a person would write it; None where nothing is the default.
    unit:       of the value: `s`, `bytes` or "".
    help:       what it does and why the default is what it is.
    repeatable: given several times as a flag, with commas in the environment, as a list in the file.
    secret:     only read from the environment: an argument shows in process lists, a settings file gets committed.
    """

    name: str
    section: str
    read: Reader
    default: str | None
    unit: str
    help: str
    repeatable: bool = False
    secret: bool = False

    @property
    def flag(self) -> str:
        """The long option, "" for a secret. A repeatable one gives one value each time: `--allowed-host`."""
        if self.secret:
            return ""
        return "--" + (self.name.removesuffix("s") if self.repeatable else self.name).replace("_", "-")

    @property
    def variable(self) -> str:
        return f"SLUICEGATE_{self.name.upper()}"


_CALLERS, _GATEWAY, _BOUNDS, _FILES, _ADMIN = "Callers", "Gateway", "Time and room", "Policies and data", "Operators"
_KIB, _MIB, _GIB = 1024, 1024**2, 1024**3
_DAY_S: Final = 86400.0

# fmt: off
SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("upstream",            _GATEWAY, values.base_url,             None,             "",      "Address of the gateway, such as https://gateway.example; `serve` needs it."),
    Setting("upstream_key",        _GATEWAY, Secret,                      None,             "",      "The gateway key itself.", secret=True),
    Setting("upstream_key_file",   _GATEWAY, values.path,                 None,             "",      "File that holds the gateway key and nothing else, mode 600."),
    Setting("credential",          _GATEWAY, word(Credential),            "proxy",          "",      "proxy: the gateway sees our key; caller: each caller sends a gateway key of its own."),
    Setting("native_segment",      _GATEWAY, values.segment,              "partner",        "",      "Path segment and header prefix of the gateway's native messages route."),
    Setting("connect_timeout",     _GATEWAY, duration(0.1, 300),          "10s",            "s",     "Longest time to connect to the gateway, TLS included; nothing has been sent then, so a repeat is safe."),
    Setting("upstream_read_timeout", _GATEWAY, duration(1, _DAY_S),       "600s",           "s",     "Longest silence of the gateway; media and reasoning models are quiet for minutes, and SDKs give up at 600 s."),
    Setting("upstream_keepalive",  _GATEWAY, duration(0, 3600),           "15s",            "s",     "How long an idle connection to the gateway is kept; shorter than the gateway keeps it, so no POST meets a stale one."),
    Setting("balance_field",       _GATEWAY, values.text,                 "credits",        "",      "Field of the gateway's credits answer that holds the balance; dots lead into objects."),
    Setting("reconcile_every",     _GATEWAY, duration(0, _DAY_S),         "10m",            "s",     "How often the gateway's balance is compared with the ledger; 0 for never. One free call each time."),

    Setting("listen",              _CALLERS, values.address,              "127.0.0.1:8787", "",      "Where callers connect; port 0 lets the system pick."),
    Setting("auth",                _CALLERS, word(Auth),                  "keys",           "",      "keys: callers show a virtual key; open: no key is asked and one sent is ignored (loopback only)."),
    Setting("allowed_hosts",       _CALLERS, values.host,                 None,             "",      "Host names callers may use besides loopback names and the listen address.", repeatable=True),
    Setting("cors_origins",        _CALLERS, values.origin,               None,             "",      "Origins of web pages that may call, such as https://app.example.", repeatable=True),

    Setting("max_body",            _BOUNDS,  size(1, 2 * _GIB),           "26214400",       "bytes", "Largest request body; the gateway refuses more than 26,214,400 bytes."),
    Setting("max_header_bytes",    _BOUNDS,  size(1 * _KIB, 1 * _MIB),    "65536",          "bytes", "Largest request head; coding agents send a few KB."),
    Setting("head_timeout",        _BOUNDS,  duration(0.05, 600),         "15s",            "s",     "Longest time for a request's head to arrive, from its first byte, and for the first one from connecting."),
    Setting("body_timeout",        _BOUNDS,  duration(0.05, _DAY_S),      "120s",           "s",     "Longest time for a whole request body: 25 MiB at 1.75 Mbit/s."),
    Setting("body_idle_timeout",   _BOUNDS,  duration(0.05, 3600),        "15s",            "s",     "Longest pause inside a request body."),
    Setting("write_timeout",       _BOUNDS,  duration(0.05, 3600),        "60s",            "s",     "How long a caller may leave its answer unread before it counts as gone."),
    Setting("keepalive_timeout",   _BOUNDS,  duration(0.05, 3600),        "75s",            "s",     "How long an idle connection of a caller is kept; longer than the 60 s of common load balancers."),
    Setting("read_on_time",        _BOUNDS,  duration(0, _DAY_S),         "600s",           "s",     "How long an answer is read on for its usage after its caller left."),
    Setting("read_on_bytes",       _BOUNDS,  size(0, 16 * _GIB),          "32MiB",          "bytes", "How much of an answer is read on after its caller left."),
    Setting("read_on_max",         _BOUNDS,  count(0, 100_000),           "256",            "",      "How many answers are read on at once for callers who left."),
    Setting("spool_bytes",         _BOUNDS,  size(64 * _KIB, 1 * _GIB),   "8MiB",           "bytes", "How far one answer may run ahead of its slowest reader."),
    Setting("queue_bytes",         _BOUNDS,  size(1 * _MIB, 64 * _GIB),   "256MiB",         "bytes", "Room for the bodies of all requests that wait; ten of the largest."),
    Setting("max_connections",     _BOUNDS,  count(1, 1_000_000),         "4096",           "",      "Most connections of callers at once."),
    Setting("max_connections_per_peer", _BOUNDS, count(1, 1_000_000),     "4096",           "",      "Most connections from one address; equal to the total, as all callers of a laptop share 127.0.0.1."),
    Setting("drain",               _BOUNDS,  duration(0, 3600),           "30s",            "s",     "How long running calls may finish after SIGTERM; orchestrators kill after 30 s by default."),

    Setting("policies",            _FILES,   values.path,                 "policies",       "",      "Folder of the policy files, *.yaml."),
    Setting("data",                _FILES,   values.path,                 None,             "",      "Folder of the ledger; the platform's user data folder by default. One process at a time."),
    Setting("cache_size",          _FILES,   size(1 * _MIB, 1024 * _GIB), "256MiB",         "bytes", "Room for stored answers in the data folder; what was not used for longest goes first."),
    Setting("cache_memory",        _FILES,   size(0, 64 * _GIB),          "32MiB",          "bytes", "Room for stored answers in memory, in front of the file."),
    Setting("durability",          _FILES,   word(Durability),            "full",           "",      "full: what was admitted survives a power cut; normal: a crash of this process."),

    Setting("admin_listen",        _ADMIN,   values.address,              "127.0.0.1:8788", "",      "Where health, metrics and the page are served."),
    Setting("admin_token",         _ADMIN,   Secret,                      None,             "",      "Token of the admin listener; needed when it is not loopback.", secret=True),
    Setting("admin_token_file",    _ADMIN,   values.path,                 None,             "",      "File that holds the admin token, mode 600."),
    Setting("alert_url",           _ADMIN,   Secret,                      None,             "",      "Webhook that is told of budgets, drift, breakers and policy mistakes; a secret, as it often holds one.", secret=True),
    Setting("alert_url_file",      _ADMIN,   values.path,                 None,             "",      "File that holds the webhook's address, mode 600."),
    Setting("alert_format",        _ADMIN,   word(AlertFormat),           "json",           "",      "What the webhook takes: json, or slack."),
    Setting("alert_secret",        _ADMIN,   Secret,                      None,             "",      "Secret that messages to the webhook are signed with.", secret=True),
    Setting("alert_secret_file",   _ADMIN,   values.path,                 None,             "",      "File that holds the secret for signing, mode 600."),
    Setting("log_format",          _ADMIN,   word(LogFormat),             "auto",           "",      "console, json, or auto: console on a terminal, else json."),
    Setting("log_level",           _ADMIN,   word(LogLevel),              "info",           "",      "debug, info, warning or error; a request is one line at info."),
    Setting("otlp_endpoint",       _ADMIN,   values.base_url,             None,             "",      "Address of an OpenTelemetry collector, such as http://127.0.0.1:4318, that gets a span for each request; needs the extra `otel`."),
    Setting("tenant_url",          _ADMIN,   values.base_url,             None,             "",      "Address of the member-group service, for `groups` and for the relay of the admin listener."),
    Setting("tenant_token",        _ADMIN,   Secret,                      None,             "",      "Token of the member-group service, for `groups`; the relay takes its callers' own.", secret=True),
    Setting("tenant_token_file",   _ADMIN,   values.path,                 None,             "",      "File that holds the token of the member-group service, mode 600."),
    Setting("quotas_every",        _ADMIN,   duration(0, _DAY_S),         "300s",           "s",     "How often the quotas of teams' member groups are read from the service; 0s: never."),
    Setting("tenant_relay",        _ADMIN,   word(TenantRelay),           "write",          "",      "What the admin listener relays to the member-group service, with the caller's own token: off, read or write."),
)
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one process, checked. Durations are seconds, sizes bytes; `SETTINGS` says what each one is for.

    notes: what is allowed but should be known, one sentence each.
    """

    upstream: BaseUrl | None
    upstream_key: Secret | None
    upstream_key_file: Path | None
    credential: Credential
    native_segment: str
    connect_timeout: float
    upstream_read_timeout: float
    upstream_keepalive: float
    balance_field: str
    reconcile_every: float
    listen: Address
    auth: Auth
    allowed_hosts: tuple[str, ...]
    cors_origins: tuple[str, ...]
    max_body: int
    max_header_bytes: int
    head_timeout: float
    body_timeout: float
    body_idle_timeout: float
    write_timeout: float
    keepalive_timeout: float
    read_on_time: float
    read_on_bytes: int
    read_on_max: int
    spool_bytes: int
    queue_bytes: int
    max_connections: int
    max_connections_per_peer: int
    drain: float
    policies: Path
    data: Path
    cache_size: int
    cache_memory: int
    durability: Durability
    admin_listen: Address
    admin_token: Secret | None
    admin_token_file: Path | None
    alert_url: Secret | None
    alert_url_file: Path | None
    alert_format: AlertFormat
    alert_secret: Secret | None
    alert_secret_file: Path | None
    log_format: LogFormat
    log_level: LogLevel
    otlp_endpoint: BaseUrl | None
    tenant_url: BaseUrl | None
    tenant_token: Secret | None
    tenant_token_file: Path | None
    quotas_every: float
    tenant_relay: TenantRelay
    notes: tuple[str, ...] = ()


def user_data_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Where programs of this user keep data on this platform."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or os.sep)
    if platform == "darwin":
        return home / "Library" / "Application Support" / "sluicegate"
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "sluicegate"
    return Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "sluicegate"
