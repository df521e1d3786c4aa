"""How the text of one setting becomes a value: addresses, base URLs, numbers, closed words.

A reader takes what a flag, an environment variable or a YAML file holds and raises ValueError with a sentence for the
person who wrote it. Sizes and durations are read by `proxy.units`.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from proxy.units import bytes_of, seconds_of

Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a listener binds. port 0: the system picks."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """scheme: http or https. prefix: path before `/v1/gateway`, "" or `/such`, without a closing slash."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def authority(self) -> str:
        """Host and port as the Host header wants them: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"


_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_-]+)*\.?")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`. A name other than localhost is not looked up: it is not."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


def text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected text")
    return value.strip()


def path(value: object) -> Path:
    return Path(text(value)).expanduser()


def host(value: object) -> str:
    """A host name or address without port, in lower case; an IPv6 address may stand in brackets."""
    name = text(value).lower()
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if ":" in name:
        try:
            return str(ipaddress.IPv6Address(name))
        except ValueError:
            raise ValueError(f"{name!r} is not a host name or address; leave the port out") from None
    if not _HOST.fullmatch(name):
        raise ValueError(f"{name!r} is not a host name or address")
    return name


def address(value: object) -> Address:
    """`host:port`; `[::1]:8787` for IPv6."""
    name, colon, port = text(value).rpartition(":")
    if not colon or not name or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(f"{value!r} is not host:port, such as 127.0.0.1:8787")
    if ":" in name and not name.startswith("["):
        raise ValueError(f"{value!r}: write an IPv6 address in brackets, such as [::1]:8787")
    return Address(host(name), int(port))


def base_url(value: object) -> BaseUrl:
    """An http or https address of the gateway, without what belongs to single calls."""
    try:
        parts = urlsplit(text(value))
        port = parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("is not a URL such as https://gateway.example")
    if parts.username is not None or parts.password is not None:
        # Nothing of the value is repeated: it holds a secret.
        raise ValueError("must not hold a user name or password; give the key by --upstream-key-file")
    if parts.query or parts.fragment:
        raise ValueError("must not hold a query or a fragment")
    prefix = parts.path.rstrip("/")
    if re.search(r"/v1(/gateway)?$", prefix):
        raise ValueError(f"leave out {prefix[prefix.index('/v1') :]}: the proxy adds it to every call")
    if prefix and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", prefix):
        raise ValueError("has a path that is not plain: letters, digits and . _ ~ - between slashes")
    return BaseUrl(parts.scheme, host(parts.hostname), port or _PORTS[parts.scheme], prefix)


def origin(value: object) -> str:
    """A web page's origin as browsers send it: scheme, host and, if it is not the scheme's own, port."""
    parsed = base_url(value)
    if parsed.prefix:
        raise ValueError("an origin has no path")
    return str(parsed)


def segment(value: object) -> str:
    name = text(value)
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,63}", name) or name == "v1":
        raise ValueError("expected one path segment of small letters, digits and -")
    return name


def word(choices: type[Enum]) -> Reader:
    """One of a closed list of words."""

    def read(value: object) -> Enum:
        try:
            return choices(value.strip() if isinstance(value, str) else value)
        except ValueError:
            raise ValueError(f"{value!r} is not one of {', '.join(str(c.value) for c in choices)}") from None

    return read


def _number(read: Callable[[Any], float], low: float, high: float, unit: str) -> Reader:
    def bounded(value: object) -> float:
        number = read(value)
        if not low <= number <= high:
            raise ValueError(f"{value!r} is outside {low:,} to {high:,} {unit}".rstrip())
        return number

    return bounded


def _whole(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,18}", str(value).strip()):
        raise ValueError(f"{value!r} is not a whole number")
    return int(str(value))


def duration(low: float, high: float) -> Reader:
    """Seconds as a float; read as `30s`, `1h30m` or a bare number of seconds."""
    return _number(seconds_of, low, high, "seconds")


def size(low: int, high: int) -> Reader:
    """Bytes as an int; read as `8MiB` or a bare number of bytes."""
    return _number(bytes_of, low, high, "bytes")


def count(low: int, high: int) -> Reader:
    return _number(_whole, low, high, "")
