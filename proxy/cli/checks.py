"""What `sluicegate doctor` looks at: one function per question, each with one finding and what to do about it.

Standard library only and one connection at a time: the doctor must work where the server does not.
"""

import socket
import ssl
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final

from proxy import __version__
from proxy.config.settings import Credential, Settings
from proxy.config.values import Address, BaseUrl

GATEWAY_BODY_MAX: Final = 26_214_400
"""Bytes of a request body that the gateway takes (its document, "Limits")."""

SKEW_S_MAX: Final = 30.0
"""A budget's day and a `Retry-After` date are off by as much as the clock is."""

_READ_MAX: Final = 65536


class State(Enum):
    OK = "ok"
    NOTE = "note"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Finding:
    """do: how to mend it; empty when there is nothing to mend."""

    name: str
    state: State
    says: str
    do: str = ""


def look(settings: Settings) -> Iterator[Finding]:
    """All findings, in the order in which things have to work."""
    yield listener("listen", settings.listen, "/-/health")
    yield listener("admin-listen", settings.admin_listen, "/healthz")
    yield data_folder(settings)
    yield body_limit(settings)
    if settings.upstream is None:
        yield Finding("gateway", State.SKIP, "no --upstream is set, so nothing was sent", "give --upstream")
        return
    resolved = dns(settings.upstream)
    yield resolved
    if resolved.state is State.OK:
        yield from gateway(settings, settings.upstream)


def listener(name: str, address: Address, health: str) -> Finding:
    """Whether the address is free, or taken by a proxy, which answers on the path `health`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address.host, address.port))
    except OSError as error:
        if _answers(address, health):
            return Finding(name, State.OK, f"a proxy answers on {address}")
        return Finding(name, State.FAIL, f"{address} cannot be used ({error.strerror})", f"choose another --{name}")
    return Finding(name, State.OK, f"{address} is free")


def _answers(address: Address, path: str) -> bool:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)
    connection = HTTPConnection(host, address.port, timeout=2)
    try:
        connection.request("GET", path, headers={"User-Agent": _agent()})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def data_folder(settings: Settings) -> Finding:
    """Whether only we can read where the books will be."""
    folder = settings.data
    if not folder.exists():
        return Finding("data", State.OK, f"{folder} is made at the first start")
    if not folder.is_dir():
        return Finding("data", State.FAIL, f"{folder} is not a folder", "choose another --data")
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return Finding("data", State.NOTE, f"{folder} can be read by others", f"chmod 700 {folder}")
    return Finding("data", State.OK, f"{folder} is ours alone")


def body_limit(settings: Settings) -> Finding:
    says = f"bodies up to {settings.max_body:,} bytes; the gateway takes {GATEWAY_BODY_MAX:,}"
    if settings.max_body > GATEWAY_BODY_MAX:
        return Finding("body limit", State.NOTE, says, "lower --max-body, so that too large bodies are refused here")
    return Finding("body limit", State.OK, says)


def dns(upstream: BaseUrl) -> Finding:
    try:
        found = socket.getaddrinfo(upstream.host, upstream.port, type=socket.SOCK_STREAM)
    except OSError as error:
        do = "check the name in --upstream and this machine's DNS"
        return Finding("dns", State.FAIL, f"{upstream.host} is not found ({error.strerror})", do)
    addresses = sorted({str(entry[4][0]) for entry in found})
    return Finding("dns", State.OK, f"{upstream.host} is {', '.join(addresses[:3])}")


def gateway(settings: Settings, upstream: BaseUrl) -> Iterator[Finding]:
    """Connect, then ask for the list of models, which costs nothing, and judge the answer."""
    connection = _connection(upstream, settings.connect_timeout)
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        do = "install the certificate authority on this machine; verification cannot be switched off"
        yield Finding(
            "connect", State.FAIL, f"the certificate of {upstream} is not trusted ({error.verify_message})", do
        )
        return
    except OSError as error:
        reason = error.strerror or type(error).__name__
        yield Finding(
            "connect", State.FAIL, f"{upstream} cannot be reached ({reason})", "check --upstream and firewalls"
        )
        return
    secured = "over TLS" if upstream.scheme == "https" else "in plain text"
    yield Finding("connect", State.OK, f"{upstream} answers {secured}")
    if settings.credential is Credential.PROXY and settings.upstream_key is None:
        connection.close()
        yield Finding("key", State.SKIP, "there is no gateway key to try", "give --upstream-key-file")
        return
    headers = {"User-Agent": _agent(), "Accept": "application/json"}
    if settings.credential is Credential.PROXY and settings.upstream_key is not None:
        headers["Authorization"] = f"Bearer {settings.upstream_key.reveal()}"
    try:
        connection.request("GET", f"{upstream.prefix}/v1/gateway/models/", headers=headers)
        answer = connection.getresponse()
        text = answer.read(_READ_MAX).decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        yield Finding("key", State.FAIL, f"the gateway broke off ({type(error).__name__})", "try again")
        return
    finally:
        connection.close()
    for judge in (_edge, _key, _clock):
        yield judge(answer, text, settings)


def _connection(upstream: BaseUrl, timeout_s: float) -> HTTPConnection:
    if upstream.scheme == "https":
        return HTTPSConnection(upstream.host, upstream.port, timeout=timeout_s, context=ssl.create_default_context())
    return HTTPConnection(upstream.host, upstream.port, timeout=timeout_s)


def _edge(answer: HTTPResponse, text: str, _: Settings) -> Finding:
    if answer.status == 403 and "1010" in text:
        return Finding(
            "edge", State.FAIL, "the gateway's edge blocks our User-Agent (error code: 1010)", "tell its owner"
        )
    return Finding("edge", State.OK, f"the gateway's edge takes the User-Agent {_agent()}")


def _key(answer: HTTPResponse, _: str, settings: Settings) -> Finding:
    if settings.credential is Credential.CALLER:
        return Finding("key", State.SKIP, "callers bring their own gateway keys")
    if answer.status == 200:
        return Finding("key", State.OK, f"the gateway takes the key {settings.upstream_key}")
    if answer.status == 401:
        return Finding("key", State.FAIL, f"the gateway refuses the key {settings.upstream_key}", "get a valid one")
    if 300 <= answer.status < 400:
        do = "give the address it leads to as --upstream"
        return Finding(
            "key", State.FAIL, f"the gateway answers {answer.status}, a redirect, which is never followed", do
        )
    if answer.status == 404:
        do = "check that --upstream is the gateway's address, without a path of its own"
        return Finding("key", State.FAIL, "there is no gateway at that address (404)", do)
    return Finding("key", State.NOTE, f"the gateway answers {answer.status}", "try again later")


def _clock(answer: HTTPResponse, _: str, __: Settings) -> Finding:
    try:
        theirs = parsedate_to_datetime(answer.headers["Date"] or "").timestamp()
    except (TypeError, ValueError):
        return Finding("clock", State.SKIP, "the gateway's answer has no date")
    skew_s = time.time() - theirs
    if abs(skew_s) > SKEW_S_MAX:
        word = "ahead of" if skew_s > 0 else "behind"
        return Finding("clock", State.NOTE, f"this clock is {abs(skew_s):.0f} s {word} the gateway's", "set the clock")
    return Finding("clock", State.OK, "this clock and the gateway's agree")


def _agent() -> str:
    return f"sluicegate/{__version__}"
