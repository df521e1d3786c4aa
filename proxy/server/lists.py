"""Model lists as SDKs expect them: wrapped, with the fields they read, everything else as the gateway sent it."""

from typing import Any
from urllib.parse import unquote

import orjson

from proxy.core.policy import Team
from proxy.errors import ProxyError
from proxy.server.call import Call


def adapted(call: Call, body: bytes) -> bytes:
    """The body for the caller; unchanged on every route but the lists of models."""
    assert call.match is not None
    name = call.match.route.name
    if name == "models":
        return _wrapped(body, call.team)
    if name == "native-model":
        return _one_of(body, unquote(call.match.values["model"]))
    if name == "native-models":
        return _native(body, call.team)
    if name == "suites":
        return _suites(body, call.team)
    if name in ("model", "credits", "native-count"):
        _object(body)
    return body


def _may(entry: Any, team: Team | None) -> bool:
    return team is None or not isinstance(entry, dict) or team.may_use_model(str(entry.get("id")))


def _native(body: bytes, team: Team | None) -> bytes:
    """The vendor-native list keeps its shape; what the team may not use is left out."""
    value = _object(body)
    entries = value.get("data") if isinstance(value, dict) else None
    if not isinstance(entries, list) or all(_may(entry, team) for entry in entries):
        return body
    kept = [entry for entry in entries if _may(entry, team)]
    ends = {"first_id": kept[0].get("id") if kept else None, "last_id": kept[-1].get("id") if kept else None}
    return orjson.dumps({**value, "data": kept, **{name: ends[name] for name in ends if name in value}})


def _suites(body: bytes, team: Team | None) -> bytes:
    """The list of suites in its own shape, without those the team may not use."""
    value = _object(body)
    entries = entries_of(value)
    kept = [entry for entry in entries if team is None or team.may_use_suite(str(entry.get("name")))]
    if len(kept) == len(entries):
        return body
    return orjson.dumps({**value, "data": kept} if isinstance(value, dict) else kept)


def entries_of(value: Any) -> list[dict[str, Any]]:
    """The entries of a list of the gateway's, wrapped or bare."""
    entries = value.get("data") if isinstance(value, dict) else value
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _object(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProxyError("upstream_broken", "The gateway answered with something that is not JSON.") from error


def _wrapped(body: bytes, team: Team | None) -> bytes:
    """`{"object":"list","data":[…]}` whether the gateway wraps its list or not; SDKs read nothing else."""
    value = _object(body)
    entries = value if isinstance(value, list) else value.get("data") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise ProxyError("upstream_broken", "The gateway's list of models has no list in it.")
    kept = [entry for entry in entries if _may(entry, team)]
    whole = len(kept) == len(entries) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("created"), int)
        and isinstance(entry.get("owned_by"), str)
        and entry.get("object") == "model"
        for entry in entries
    )
    if whole and isinstance(value, dict) and value.get("object") == "list":
        return body
    filled = [
        {
            "object": "model",
            **entry,
            "created": entry.get("created") or 0,
            "owned_by": entry.get("owned_by") or "gateway",
        }
        for entry in (entry if isinstance(entry, dict) else {"id": str(entry)} for entry in kept)
    ]
    rest = value if isinstance(value, dict) else {}
    return orjson.dumps({**rest, "object": "list", "data": filled})


def _one_of(body: bytes, model: str) -> bytes:
    """One entry of the vendor-native list: the gateway has no route for it."""
    value = _object(body)
    for entry in value.get("data", ()) if isinstance(value, dict) else ():
        if isinstance(entry, dict) and entry.get("id") == model:
            return orjson.dumps(entry)
    raise ProxyError("unknown_model", f"Model '{model[:200]}' not found")
