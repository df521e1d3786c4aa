"""Virtual keys: those of policy files and those issued here, how they stand, and changes of the latter."""

import os
import re
from typing import Any, Final

from proxy.admin.call import Asked, Refused
from proxy.core.instants import ahead
from proxy.core.keyring import Issued, KeyState
from proxy.server.keys import KeyTaken
from proxy.server.parts import Parts
from proxy.stores.ledger.commit import LedgerUnavailable
from proxy.stores.ledger.contract import CannotOpen
from proxy.units import instant_text

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""As in policy files: ids become labels and log fields."""

NOTE_MAX: Final = 200


async def show(_: Asked, parts: Parts) -> dict[str, Any]:
    """All keys, never a key itself."""
    at_s = parts.wall()
    return {"keys": [*_of_files(parts, at_s), *(_row(one, parts, at_s) for one in parts.keys.ring.issued.values())]}


def _of_files(parts: Parts, at_s: float) -> list[dict[str, Any]]:
    policy = parts.state.policy
    rows = []
    for team in policy.teams.values():
        for key in team.keys:
            expired = key.expires_s is not None and key.expires_s <= at_s
            rows.append({
                "id": key.id, "team": team.name, "state": (KeyState.EXPIRED if expired else KeyState.ACTIVE).value,
                "created_at": None, "ends_at": _at(key.expires_s), "note": "", "account": key.id,
                "source": policy.sources.get(f"team {team.name}", ""),
            })  # fmt: skip
    return rows


def _row(one: Issued, parts: Parts, at_s: float) -> dict[str, Any]:
    # A team that left the policies has no calls any more.
    state = one.state(at_s).value if one.team in parts.state.policy.teams else "no such team"
    return {
        "id": one.id,
        "team": one.team,
        "state": state,
        "created_at": instant_text(one.created_s),
        "ends_at": _at(one.ends_s),
        "note": one.note,
        "account": one.account or one.id,
        "source": "issued",
    }


def _at(at_s: float | None) -> str | None:
    return None if at_s is None else instant_text(at_s)


async def issue(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Body: team, and id, expires, note; or replaces with overlap, for a key that takes over. Raises Refused."""
    replaced = _replaced(asked, parts)
    team = asked.text_or_none("team") or (replaced.team if replaced else asked.text("team"))
    if team not in parts.state.policy.teams:
        raise Refused(404, f"there is no team {team!r}; known are {', '.join(parts.state.policy.teams)}")
    if replaced is not None and team != replaced.team:
        raise Refused(400, f"the key {replaced.id!r} belongs to team {replaced.team!r}")
    key_id = _free_id(asked.text_or_none("id") or f"{team[:55]}-{os.urandom(4).hex()}", team, parts)
    expires_s = _ahead(asked.text_or_none("expires"), parts)
    overlap_s = _ahead(asked.text_or_none("overlap"), parts)
    note = asked.text_or_none("note") or ""
    if len(note) > NOTE_MAX:
        raise Refused(400, f"the note is longer than {NOTE_MAX} characters")
    if overlap_s is not None and replaced is None:
        raise Refused(400, "overlap goes with replaces")
    try:
        account = parts.keys.ring.account_of(team, replaced.id) if replaced is not None else ""
        text, made = await parts.keys.issue(key_id, team, expires_s=expires_s, note=note, account=account)
        if replaced is not None:
            await parts.keys.revoke(replaced.id, parts.wall() if overlap_s is None else overlap_s)
    except KeyTaken as error:
        raise Refused(409, f"there is a key {key_id!r} already; choose another id") from error
    except (LedgerUnavailable, CannotOpen) as error:
        raise Refused(503, f"the ledger cannot take entries: {error}") from error
    said = {**_row(made, parts, parts.wall()), "key": text}
    if replaced is not None:
        said["replaces"] = _row(parts.keys.ring.issued[replaced.id], parts, parts.wall())
    return said


async def revoke(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Refuse a key from now on. Raises Refused."""
    one = _issued(asked.values["id"], parts)
    if one.state(parts.wall()) is KeyState.REVOKED:
        raise Refused(409, f"the key {one.id!r} is revoked already")
    try:
        return _row(await parts.keys.revoke(one.id, parts.wall()), parts, parts.wall())
    except LedgerUnavailable as error:
        raise Refused(503, f"the ledger cannot take entries: {error}") from error


def _issued(key_id: str, parts: Parts) -> Issued:
    one = parts.keys.ring.issued.get(key_id)
    if one is not None:
        return one
    if any(key.id == key_id for team in parts.state.policy.teams.values() for key in team.keys):
        raise Refused(409, f"the key {key_id!r} stands in the policy files; take it out there")
    raise Refused(404, f"there is no key {key_id!r}; see sluicegate key list")


def _replaced(asked: Asked, parts: Parts) -> Issued | None:
    key_id = asked.text_or_none("replaces")
    if key_id is None:
        return None
    one = _issued(key_id, parts)
    if one.state(parts.wall()) is not KeyState.ACTIVE:
        raise Refused(409, f"the key {key_id!r} is {one.state(parts.wall()).value}; issue a new one without replaces")
    if one.revoked_s is not None:
        until = instant_text(one.revoked_s)
        raise Refused(409, f"the key {key_id!r} is replaced already and taken until {until}; replace the one that has")
    return one


def _free_id(key_id: str, team: str, parts: Parts) -> str:
    if not NAME.fullmatch(key_id):
        raise Refused(400, "id: letters, digits and . _ - , at most 64, the first a letter or digit")
    in_files = any(key.id == key_id for key in parts.state.policy.teams[team].keys)
    if in_files or key_id in parts.keys.ring.issued:
        raise Refused(409, f"there is a key {key_id!r} already, and its entries are its own; choose another id")
    return key_id


def _ahead(text: str | None, parts: Parts) -> float | None:
    try:
        return None if text is None else ahead(text, parts.wall())
    except ValueError as error:
        raise Refused(400, str(error)) from error
