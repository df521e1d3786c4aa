"""Ids of the gateway's answers: given to the team that asked, and checked when somebody comes back with one."""

from urllib.parse import unquote

from proxy.config.settings import Auth, Credential
from proxy.core.owners import Claim, Owner
from proxy.core.riders import Own, Used
from proxy.core.usage import Meter
from proxy.errors import ProxyError
from proxy.server.call import Call
from proxy.server.parts import Parts


def check(call: Call, parts: Parts) -> None:
    """Raises ProxyError `not_yours` for an id that is not this team's."""
    assert call.match is not None
    if "id" in call.match.values and call.match.route.name != "chatbot":
        _check_owner(call, call.match.values["id"], parts)
    if (facts := call.facts) is None:
        return
    if facts.previous_response_id:
        _check_owner(call, facts.previous_response_id, parts)
    if facts.conversation_id:
        _check_owner(call, facts.conversation_id, parts)


def passes_unknown(call: Call, parts: Parts) -> bool:
    """Whether an id that no team was given goes to the gateway."""
    return call.policy.passes_unknown_ids(
        open_auth=parts.settings.auth is Auth.OPEN,
        callers_bring_keys=parts.settings.credential is Credential.CALLER,
    )


def _check_owner(call: Call, identifier: str, parts: Parts) -> None:
    """Another team's id is not there for this one, and the gateway is not asked."""
    assert call.team is not None
    claim, _ = parts.owners.claim(identifier, call.team.name, call.at_s)
    if claim is Claim.FOREIGN or (claim is Claim.UNKNOWN and not passes_unknown(call, parts)):
        raise ProxyError(
            "not_yours", "No such id for this team. An id belongs to the team whose call was answered with it."
        )


def new_id(call: Call) -> str | None:
    """The id in the answer, as long as the caller's team was not given it."""
    meter = call.source.exchange.meter if call.source is not None else None
    return None if meter is None or meter.response_id == call.owns else meter.response_id


async def give(call: Call, parts: Parts) -> None:
    """An id in the answer belongs to the caller's team, on disk too, before the first byte of it is sent.

    Where the ledger is away the answer goes out all the same: it is paid for, and the id is kept in memory until the
    ledger takes it.
    """
    identifier = new_id(call)
    if identifier is None or call.team is None:
        return
    call.owns = identifier
    if parts.owners.claim(identifier, call.team.name, parts.wall())[0] is not Claim.UNKNOWN:
        return
    # Until the answer says what it used, a call chained to it is held as if it had used all it could.
    most = call.tokens or None
    owner = Owner(call.team.name, call.model, parts.wall(), most)
    parts.owners.give(identifier, owner)
    assert call.source is not None
    running = call.source.exchange.ending is None
    if running and call.hold is not None and call.facts is not None and call.facts.background:
        # A stream of work in the background: should the process die in the middle of it, a poll still ends the hold.
        parts.operations.begin(identifier, owner.team, "response", owner.model, call.hold)
    name = unquote(identifier)
    bound = [] if most is None else [Used(name, most, 0, owner.at_s)]
    await parts.books.keep([Own(name, owner.team, owner.model, owner.at_s), *bound])


def parent_tokens(call: Call, parts: Parts) -> int:
    """The most that the answer a Responses call is chained to took in and gave out; 0 where there is none."""
    parent = call.facts.previous_response_id if call.facts is not None else None
    if parent is None or call.team is None:
        return 0
    _, owner = parts.owners.claim(parent, call.team.name, call.at_s)
    return 0 if owner is None or owner.tokens is None else owner.tokens


def tell_usage(meter: Meter | None, parts: Parts) -> None:
    """Keep what a stored answer used, for the ceiling of calls that are chained to it."""
    if meter is None or meter.response_id is None or not meter.usage.settled:
        return
    usage = meter.usage
    if usage.input is None or usage.output is None:
        return
    if parts.owners.used(meter.response_id, usage.input + usage.output):
        parts.books.note([Used(unquote(meter.response_id), usage.input, usage.output, parts.wall())])
