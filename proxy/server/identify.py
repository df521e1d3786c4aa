"""Identify: whose request is this? Judged on the header alone, before a byte of the body is read."""

from aiohttp import web

from proxy.config.settings import Auth, Credential
from proxy.core.policy import Team, credential_of
from proxy.errors import ProxyError
from proxy.server import local
from proxy.server.call import Call
from proxy.server.parts import Parts

OPEN_KEY = "open"
"""Stands for the key of a caller that shows none."""

_CALLER, _OPEN = Credential.CALLER, Auth.OPEN
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""


def identify(call: Call, parts: Parts) -> web.StreamResponse | None:
    """Set team and key id; raises ProxyError `missing_key` or `invalid_key`. Routes without a key answer here."""
    assert call.match is not None
    if not call.match.route.keyed:
        return local.unkeyed(call, parts)
    identified(call, parts)
    return None


def identified(call: Call, parts: Parts) -> None:
    """Set team and key id of a call on a route that wants a key. Raises as `identify` does."""
    if parts.settings.credential is _CALLER:
        _by_gateway_key(call, _shown(call, "gateway"))
    elif parts.settings.auth is _OPEN:
        call.team, call.key_id = _open_team(call), OPEN_KEY
    else:
        found = _team_of(_shown(call), call, parts)
        if found is None:
            raise ProxyError(
                "invalid_key",
                "The virtual key is unknown, expired or revoked. Check the key that the client sends, or ask whoever "
                "keeps the policies for a new one.",
            )
        call.team, call.key_id = found
        call.account = parts.keys.ring.account_of(call.team.name, call.key_id)


def _team_of(shown: str, call: Call, parts: Parts) -> tuple[Team, str] | None:
    """The team and id of a virtual key, of the policy files or issued; both are asked, so that both cost the same."""
    issued = parts.keys.ring.find(shown, call.at_s)
    found = call.policy.team_of_key(shown, call.at_s)
    if found is None and issued is not None and (team := call.policy.teams.get(issued.team)) is not None:
        return team, issued.id
    return found


def _open_team(call: Call) -> Team:
    team = call.policy.team_of_open()
    if team is None:
        raise ProxyError("missing_key", "No policy names an open_team, so callers without a virtual key are refused.")
    return team


def _by_gateway_key(call: Call, shown: str) -> None:
    """The caller brings its own gateway key, whose digest is its identity."""
    call.gateway_key = shown
    call.credential = credential_of(shown)
    found = call.policy.team_of_key(shown, call.at_s)
    if found is not None:
        call.team, call.key_id = found
    else:
        call.team, call.key_id = _open_team(call), call.credential


def _shown(call: Call, kind: str = "virtual") -> str:
    """The key in `Authorization: Bearer` or `x-api-key`; that they agree was judged with the head."""
    assert call.head is not None
    if call.head.other_scheme:
        raise ProxyError("invalid_key", "The Authorization header is not of the form Bearer KEY.")
    if call.head.key is None:
        raise ProxyError(
            "missing_key", f"No {kind} key was sent. Send it as Authorization: Bearer KEY or as x-api-key: KEY."
        )
    return call.head.key
