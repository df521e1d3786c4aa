"""Where settings come from: flags, then environment, then the settings file, then defaults.

`load` gathers every problem of every source before it raises, each with the place it was written at.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from proxy.config.problem import Problem, Problems, did_you_mean
from proxy.config.secret import secret_from_file
from proxy.config.settings import SETTINGS, Auth, Credential, Setting, Settings, user_data_folder
from proxy.config.values import is_loopback

_FLAG, _VARIABLE, _FILE, _DEFAULT = range(4)
_FILE_PAIRS: Final = ("upstream_key", "admin_token", "tenant_token", "alert_url", "alert_secret")
"""Secrets that may come from the environment or, by the setting of the same name plus `_file`, from a file."""

NOT_SETTINGS: Final = frozenset({"SLUICEGATE_CONFIG", "SLUICEGATE_KEY", "SLUICEGATE_URL"})
"""Variables of ours that are no settings: the settings file, and the key and address that `env` and `run` hand out."""

_OF_A_CLUSTER: Final = re.compile(r"SLUICEGATE_(SERVICE|PORT)(_|$)")
"""What Kubernetes puts into every container beside a service named sluicegate; none of it is meant for us."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What was written for one setting, where, and how strong that place is (smaller wins)."""

    written: Any
    where: str
    rank: int


def load(flags: Mapping[str, Any], environ: Mapping[str, str], file: Path | None, *, serving: bool = False) -> Settings:
    """Read all sources and check them together.

    flags:   values by setting name as given on the command line; None and () are not given.
    file:    the settings file, None for none.
    serving: also demand what only a running proxy needs: the gateway's address and a key for it.

    Raises Problems with everything that is wrong.
    """
    problems: list[Problem] = []
    found = _from_file(file, problems) | _from_environment(environ, problems) | _from_flags(flags)
    read: dict[str, Any] = {}
    for row in SETTINGS:
        item = found.get(row.name) or _Found(row.default, f"default of {row.name}", _DEFAULT)
        try:
            read[row.name] = _value(row, item.written)
        except ValueError as error:
            read[row.name] = () if row.repeatable else None
            problems.append(Problem(item.where, str(error)))
    read["data"] = read["data"] or user_data_folder(environ)
    notes = [note for name in _FILE_PAIRS if (note := _settle_secret(name, read, found, problems))]
    # Rules between settings speak only where each of them could be read.
    faulty = {problem.where for problem in problems}
    for rule in _RULES:
        problems += [p for p in rule(read, _Where(found), serving) if p.where not in faulty]
    if problems:
        raise Problems(problems)
    return Settings(**read, notes=(*notes, *_notes(read)))


def _value(row: Setting, written: Any) -> Any:
    if written is None:
        return () if row.repeatable else None
    if not row.repeatable:
        return row.read(written)
    items = written.split(",") if isinstance(written, str) else written
    if not isinstance(items, list | tuple):
        raise ValueError("expected a list")
    return tuple(row.read(item) for item in items if item != "")


def _from_flags(flags: Mapping[str, Any]) -> dict[str, _Found]:
    by_name = {row.name: row for row in SETTINGS}
    return {
        name: _Found(value, by_name[name].flag or name, _FLAG)
        for name, value in flags.items()
        if value is not None and value != ()
    }


def _from_environment(environ: Mapping[str, str], problems: list[Problem]) -> dict[str, _Found]:
    by_variable = {row.variable: row for row in SETTINGS}
    found = {}
    for variable in sorted(environ):
        if not variable.startswith("SLUICEGATE_") or variable in NOT_SETTINGS or _OF_A_CLUSTER.match(variable):
            continue
        if row := by_variable.get(variable):
            # An empty variable is how shells and compose files say "not set".
            if environ[variable].strip():
                found[row.name] = _Found(environ[variable], variable, _VARIABLE)
        else:
            problems.append(Problem(variable, "is not a setting", did_you_mean(variable, by_variable)))
    return found


def _from_file(file: Path | None, problems: list[Problem]) -> dict[str, _Found]:
    if file is None:
        return {}
    # Commands without a settings file start quicker without the YAML reader.
    from proxy.config.yamlfile import read_yaml

    try:
        document = read_yaml(file)
    except Problems as error:
        problems += error.problems
        return {}
    by_name = {row.name: row for row in SETTINGS}
    found = {}
    for key, value in document.tree.items():
        where = document.place([key])
        row = by_name.get(key) if isinstance(key, str) else None
        if row is None:
            known = [row.name for row in SETTINGS if not row.secret]
            problems.append(Problem(where, f"{key}: is not a setting", did_you_mean(str(key), known)))
        elif row.secret:
            problems.append(Problem(where, f"{key}: a secret does not belong here", f"use {row.name}_file"))
        elif value is not None:
            found[row.name] = _Found(value, f"{where}: {key}", _FILE)
    return found


def _settle_secret(name: str, read: dict[str, Any], found: Mapping[str, _Found], problems: list[Problem]) -> str | None:
    """Take the secret from its file where the file was named in the stronger place. Returns a note about the file."""
    direct, by_file = found.get(name), found.get(f"{name}_file")
    if by_file is None or read[f"{name}_file"] is None or (direct and direct.rank < by_file.rank):
        read[f"{name}_file"] = None
        return None
    if direct and direct.rank == by_file.rank:
        problems.append(Problem(by_file.where, f"{direct.where} is set too", "set one of them"))
        return None
    try:
        read[name], note = secret_from_file(read[f"{name}_file"])
    except ValueError as error:
        problems.append(Problem(by_file.where, f"{read[f'{name}_file']} {error}"))
        return None
    return note


@dataclass(frozen=True, slots=True)
class _Where:
    """Places for the problems of rules: where a setting was written, else the flag it would be written with."""

    found: Mapping[str, _Found]

    def __call__(self, name: str) -> str:
        if item := self.found.get(name):
            return item.where
        row = next(row for row in SETTINGS if row.name == name)
        return row.flag or row.variable


_Rule = Callable[[Mapping[str, Any], _Where, bool], Iterator[Problem]]


def _open_only_on_loopback(read: Mapping[str, Any], where: _Where, _: bool) -> Iterator[Problem]:
    if read["auth"] is Auth.OPEN and read["listen"] and not read["listen"].is_loopback:
        what = f"auth open lets everybody who reaches {read['listen']} spend"
        yield Problem(where("auth"), what, "listen on 127.0.0.1, or use auth keys")


def _admin_beyond_loopback_has_a_token(read: Mapping[str, Any], where: _Where, _: bool) -> Iterator[Problem]:
    if read["admin_listen"] and not read["admin_listen"].is_loopback and read["admin_token"] is None:
        what = f"{read['admin_listen']} is reached from other machines and has no token"
        yield Problem(where("admin_listen"), what, "listen on 127.0.0.1, or give --admin-token-file")


def _listeners_differ(read: Mapping[str, Any], where: _Where, _: bool) -> Iterator[Problem]:
    data, admin = read["listen"], read["admin_listen"]
    if data and admin and data == admin and data.port:
        yield Problem(where("admin_listen"), f"{admin} is where callers connect", "choose another port")


def _upstream_is_not_us(read: Mapping[str, Any], where: _Where, _: bool) -> Iterator[Problem]:
    upstream, listen = read["upstream"], read["listen"]
    if upstream and listen and upstream.port == listen.port and is_loopback(upstream.host) and listen.is_loopback:
        yield Problem(where("upstream"), f"{upstream} is this proxy itself", "give the gateway's address")


def _serving_needs_a_gateway(read: Mapping[str, Any], where: _Where, serving: bool) -> Iterator[Problem]:
    if not serving:
        return
    if read["upstream"] is None:
        yield Problem(where("upstream"), "is not set", "give the gateway's address, or try `sluicegate demo`")
    if read["credential"] is Credential.PROXY and read["upstream_key"] is None:
        do = "give --upstream-key-file or SLUICEGATE_UPSTREAM_KEY, or use --credential caller"
        yield Problem(where("upstream_key_file"), "there is no gateway key", do)


def _named_policies_exist(read: Mapping[str, Any], where: _Where, _: bool) -> Iterator[Problem]:
    # Without files there are no limits: a folder that was named and is not there must not mean that.
    if "policies" in where.found and read["policies"] and not read["policies"].is_dir():
        yield Problem(where("policies"), f"{read['policies']} is not a folder", "mend the path")


def _webhook_is_an_address(read: Mapping[str, Any], where: _Where, _: bool) -> Iterator[Problem]:
    url = read["alert_url"]
    if url is not None and not re.match(r"https?://[^/?#@]+([/?]|$)", url.reveal()):
        # Nothing of the value is repeated: it holds a secret.
        yield Problem(where("alert_url"), "is no http or https address", "copy the webhook's whole address")


_RULES: Final[tuple[_Rule, ...]] = (
    _open_only_on_loopback,
    _admin_beyond_loopback_has_a_token,
    _listeners_differ,
    _upstream_is_not_us,
    _serving_needs_a_gateway,
    _named_policies_exist,
    _webhook_is_an_address,
)


def _notes(read: Mapping[str, Any]) -> Iterator[str]:
    upstream = read["upstream"]
    if upstream and upstream.scheme == "http" and not is_loopback(upstream.host):
        yield f"{upstream} is plain http: the gateway key and every prompt cross the network unencrypted"


def settings_file(flag: Path | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    """The settings file: the one named by flag or SLUICEGATE_CONFIG, else `sluicegate.yaml` in `folder` if it is there.

    A named file that does not exist is returned all the same, so that `load` reports it.
    """
    if flag is not None:
        return flag
    if named := environ.get("SLUICEGATE_CONFIG", "").strip():
        return Path(named).expanduser()
    return usual if (usual := folder / "sluicegate.yaml").exists() else None
