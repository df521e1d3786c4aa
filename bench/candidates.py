"""Who is measured: a table of candidates, how each is set up, and why one may be missing."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import books
from bench.gateway import COMPLETION
from proxy.stores.ledger.sqlite import SqliteLedger

ROOT: Final = Path(__file__).resolve().parent.parent
HOME: Final = ROOT / "build" / "bench"
"""What other people's programs are installed into, and what all of them write."""
POLICIES: Final = Path(__file__).resolve().parent / "policies"

KEY: Final = "sk-bench-7f3a9c51d2e84b60a1f93c5577e01d2b"
"""The key all callers show; policies/bench.yaml has its SHA-256."""

NGINX_CONF: Final = """
daemon off; master_process off; pid {home}/nginx.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s; client_max_body_size 30m;
  client_body_temp_path {home}/nginx-body; proxy_temp_path {home}/nginx-proxy; fastcgi_temp_path {home}/nginx-f;
  uwsgi_temp_path {home}/nginx-u; scgi_temp_path {home}/nginx-s;
  upstream gateway {{ server 127.0.0.1:{gateway}; keepalive 512; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 600s;
    }}
  }}
}}
"""

# A file is served to GET alone, so a POST is led to it by way of its own refusal.
NGINX_STATIC_CONF: Final = """
daemon off; master_process off; pid {home}/nginx-static.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s; client_max_body_size 30m;
  client_body_temp_path {home}/nginx-body; proxy_temp_path {home}/nginx-proxy; fastcgi_temp_path {home}/nginx-f;
  uwsgi_temp_path {home}/nginx-u; scgi_temp_path {home}/nginx-s; open_file_cache max=10;
  server {{
    listen 127.0.0.1:{port} backlog=4096; root {home}/static; default_type application/json;
    location / {{ error_page 405 =200 /answer.json; try_files /answer.json =404; }}
  }}
}}
"""

# As its own page on production says: errors only in the log, nothing written per request, no retries, no callbacks.
LITELLM_CONF: Final = """
model_list:
- model_name: bench
  litellm_params: {{model: openai/bench, api_base: "http://127.0.0.1:{gateway}/v1", api_key: sk-upstream}}
general_settings:
  {{master_key: {key}, disable_error_logs: true, disable_spend_logs: true, background_health_checks: false,
    proxy_batch_write_at: 60}}
litellm_settings:
  {{telemetry: false, drop_params: true, set_verbose: false, json_logs: false, request_timeout: 600, num_retries: 0,
    callbacks: []}}
router_settings: {{num_retries: 0, enable_pre_call_checks: false, disable_cooldowns: true}}
"""
LITELLM_ENV: Final = {
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "USE_AIOHTTP_TRANSPORT": "True",
    "NO_PROXY": "*",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Ports of one start. admin: of our own second listener."""

    port: int
    gateway: int
    admin: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of the table.

    command:    what starts it.
    set_up:     installs it where it is missing; the reason in words when that fails.
    heavy:      so slow that a start for every round and the largest numbers of callers would take the whole run.
    headers:    lines its callers send besides the key.
    patience_s: longest time from start to a first answer.
    only:       cells it is for; empty: all.
    key:        what its callers show.
    """

    name: str
    what: str
    command: Callable[[Place], list[str]]
    set_up: Callable[[], str | None] = lambda: None
    heavy: bool = False
    relays: bool = True
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Callable[[Place], tuple[str, ...]] = lambda _: ()
    patience_s: float = 20.0
    only: tuple[str, ...] = ()
    key: str = KEY


def _sluicegate(place: Place, policies: Path = POLICIES) -> list[str]:
    gateway, listen, admin = (f"127.0.0.1:{port}" for port in (place.gateway, place.port, place.admin))
    return [
        *(sys.executable, "-m", "proxy", "serve", "--log-format", "json", "--policies", str(policies)),
        *(
            "--data",
            str(HOME / "data" / str(place.port)),
            "--upstream",
            f"http://{gateway}",
            "--listen",
            listen,
            "--admin-listen",
            admin,
        ),
    ]


TEAMS: Final = 1000
ENTRIES: Final = int(os.environ.get("ENTRIES", "200000"))
_GROWN: Final = HOME / "grown"


def _grown_set_up() -> str | None:
    """Rules of a thousand teams, and a ledger as months of their calls would have left it."""
    books_file = _GROWN / f"ledger-{ENTRIES}.db"
    (_GROWN / "rules").mkdir(parents=True, exist_ok=True)
    (_GROWN / "rules" / "bench.yaml").write_text(books.policy(TEAMS))
    if not books_file.exists():
        asyncio.run(_new_books(books_file))
        books.fill(books_file, ENTRIES, TEAMS, time.time())
    return None


async def _new_books(path: Path) -> None:
    await (await SqliteLedger.open(path, now_s=time.time())).close()


def _grown(place: Place) -> list[str]:
    data = HOME / "data" / str(place.port)
    data.mkdir(parents=True)
    shutil.copyfile(_GROWN / f"ledger-{ENTRIES}.db", data / "ledger.db")
    return _sluicegate(place, _GROWN / "rules")


def _nginx_static(place: Place) -> list[str]:
    (HOME / "static").mkdir(exist_ok=True)
    (HOME / "static" / "answer.json").write_bytes(COMPLETION)
    conf = HOME / "nginx-static.conf"
    conf.write_text(NGINX_STATIC_CONF.format(home=HOME, port=place.port))
    return [shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(HOME), "-c", str(conf)]


def _relay(place: Place) -> list[str]:
    return [sys.executable, "-m", "bench.relay", str(place.port), str(place.gateway)]


def _fixed(place: Place) -> list[str]:
    return [sys.executable, "-m", "bench.relay", str(place.port)]


def _nginx(place: Place) -> list[str]:
    conf = HOME / "nginx.conf"
    conf.write_text(NGINX_CONF.format(home=HOME, port=place.port, gateway=place.gateway))
    return [shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(HOME), "-c", str(conf)]


def _nginx_set_up() -> str | None:
    if shutil.which("nginx") or Path("/usr/sbin/nginx").exists():
        return None
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "nginx is not installed, and only root may install it with apt-get"
    return _tried(["sh", "-c", "apt-get update -q && apt-get install -y -q --no-install-recommends nginx-light"])


def _litellm(folder: str) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        conf = HOME / f"{folder}.yaml"
        conf.write_text(LITELLM_CONF.format(gateway=place.gateway, key=KEY))
        binaries = HOME / folder / "bin"
        return [
            *(str(binaries / "python"), str(binaries / "litellm"), "--config", str(conf), "--num_workers", "1"),
            *("--host", "127.0.0.1", "--port", str(place.port)),
        ]

    return command


def _litellm_set_up(folder: str, version: str, *more: str) -> Callable[[], str | None]:
    def set_up() -> str | None:
        if (HOME / folder / "bin" / "litellm").exists():
            return None
        return _tried([sys.executable, "-m", "venv", "--clear", str(HOME / folder)]) or _tried(
            [str(HOME / folder / "bin" / "python"), "-m", "pip", "install", "-q", f"litellm[proxy]=={version}", *more]
        )

    return set_up


PORTKEY: Final = """{
  "dependencies": {"@portkey-ai/gateway": "1.15.2"},
  "overrides": {"@hono/node-server": "1.13.8", "hono": "4.9.7"}
}
"""
"""Newer servers than the pinned one break its streams (`TypeError: immutable`)."""


def _portkey(place: Place) -> list[str]:
    start = HOME / "portkey" / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    return [shutil.which("node") or "node", str(start), f"--port={place.port}", "--headless"]


def _portkey_set_up() -> str | None:
    folder = HOME / "portkey"
    if (folder / "node_modules").exists():
        return None
    if shutil.which("npm") is None:
        return "npm is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(PORTKEY)
    return _tried(["npm", "install", "--ignore-scripts", "--prefix", str(folder)])


def _tried(command: list[str]) -> str | None:
    """Run an installation; None when it went well, else its last words."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr or done.stdout).strip()[-300:]


def _portkey_headers(place: Place) -> tuple[str, ...]:
    url = f"http://127.0.0.1:{place.gateway}/v1"
    return ("x-portkey-provider: openai", f"x-portkey-custom-host: {url}")


SLUICEGATE: Final = Candidate(
    "sluicegate",
    "this proxy, all on: a key, two budgets, holds in a ledger that survives a power cut, meter, metrics, a log line",
    _sluicegate,
    env={"SLUICEGATE_UPSTREAM_KEY": "sk-upstream-of-bench"},
)
RELAY: Final = Candidate("aiohttp relay", "a bare relay of aiohttp's server and client on uvloop", _relay)
FIXED: Final = Candidate("aiohttp fixed", "aiohttp's server on uvloop with fixed bytes", _fixed, relays=False)
NGINX: Final = Candidate("nginx", "nginx as Debian has it, one worker, no buffering, no log", _nginx, _nginx_set_up)

STATIC: Final = Candidate(
    "nginx static", "nginx with a file of the same bytes", _nginx_static, _nginx_set_up,
    relays=False, only=("json-1", "json-32"),
)  # fmt: skip
GROWN: Final = Candidate(
    "sluicegate grown", f"this proxy with 1,000 teams, 10,000 accounts, and {ENTRIES:,} entries in its ledger", _grown,
    _grown_set_up, env=SLUICEGATE.env, only=("teams-1", "crowd"), key=books.key(0), patience_s=60.0,
)  # fmt: skip

CANDIDATES: Final[tuple[Candidate, ...]] = (
    SLUICEGATE,
    GROWN,
    RELAY,
    FIXED,
    NGINX,
    STATIC,
    Candidate(
        "LiteLLM 1.108.7",
        "its newest version, production settings, master key, no database",
        _litellm("litellm"),
        _litellm_set_up("litellm", "1.108.7", "httptools", "opentelemetry-sdk", "prisma", "async_timeout"),
        heavy=True,
        env=LITELLM_ENV,
        patience_s=120.0,
    ),
    Candidate(
        "LiteLLM 1.74.9",
        "the quickest version of it we know, production settings, master key, no database",
        _litellm("litellm-1.74"),
        _litellm_set_up("litellm-1.74", "1.74.9"),
        heavy=True,
        env=LITELLM_ENV,
        patience_s=120.0,
    ),
    Candidate(
        "Portkey 1.15.2",
        "npm package, its server pinned to a version that streams, no key asked",
        _portkey,
        _portkey_set_up,
        heavy=True,
        env={"NODE_ENV": "production"},
        headers=_portkey_headers,
    ),
)
