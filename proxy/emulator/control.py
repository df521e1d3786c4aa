"""The emulator's own routes, for tests in other processes: what it saw, how it stands, what shall go wrong."""

import base64
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import orjson
from aiohttp import web

from proxy.emulator.faults.asking import Recording, read_armed
from proxy.emulator.faults.table import FAULTS
from proxy.emulator.money import credit_text, units_of

if TYPE_CHECKING:
    from proxy.emulator.gateway import Gateway

PREFIX: Final = "/_emulator/"


async def control(gateway: "Gateway", request: web.BaseRequest) -> web.Response:
    """Answer a control request; a mistake in it is a 400 with its reason."""
    handler = CONTROLS.get((request.method, request.path.removeprefix(PREFIX)))
    if handler is None:
        rows = ", ".join(f"{method} {PREFIX}{path}" for method, path in CONTROLS)
        return _json({"detail": f"there are {rows}"}, 404)
    try:
        text = await request.read()
        value = orjson.loads(text) if text else {}
        return _json(await handler(gateway, value, request.query))
    except (KeyError, TypeError, ValueError, ArithmeticError, TimeoutError) as error:
        return _json({"detail": f"{type(error).__name__}: {error}"}, 400)


async def _journal(gateway: "Gateway", _value: Any, query: Mapping[str, str]) -> Any:
    """`?over=N` answers as soon as N requests are over, at latest after `&within=60` seconds: nobody asks in a loop."""
    if "over" in query:
        wanted = int(query["over"])
        await gateway.wait_for(
            lambda journal: sum(seen.over for seen in journal) >= wanted, float(query.get("within", 60))
        )
    return [seen.as_json() for seen in gateway.journal]


async def _state(gateway: "Gateway", _value: Any, _query: Mapping[str, str]) -> Any:
    world = gateway.world
    return {
        "credits": {member: credit_text(units) for member, units in world.balances.items()},
        "limits_used": world.counters.used(),
        "tool_calls": world.tool_calls,
        "open_connections": gateway.connections,
        "open_requests": sum(not seen.over for seen in gateway.journal),
        "gates_waiting": {name: count for name, count in gateway.gates.waiting.items() if count},
        "faults": [{"name": row.name, "params": row.params, "times": row.times} for row in gateway.armed],
    }


async def _faults(_gateway: "Gateway", _value: Any, _query: Mapping[str, str]) -> Any:
    """Every fault there is, with its parameters."""
    return {fault.name: fault.help for fault in FAULTS.values()}


async def _arm(gateway: "Gateway", value: Any, _query: Mapping[str, str]) -> Any:
    """`{"fault": "429 retry=5 times=2 prefix=/v1/gateway/mcp/"}`, or its parts as fields next to `name`."""
    if "fault" in value:
        gateway.armed.append(read_armed(value["fault"], FAULTS))
    else:
        gateway.set_fault(**value)
    return {"armed": len(gateway.armed)}


async def _disarm(gateway: "Gateway", _value: Any, _query: Mapping[str, str]) -> Any:
    gateway.clear_faults()
    return {"armed": 0}


async def _reset(gateway: "Gateway", _value: Any, _query: Mapping[str, str]) -> Any:
    gateway.reset()
    return {"reset": True}


async def _credits(gateway: "Gateway", value: Any, _query: Mapping[str, str]) -> Any:
    """`{"member": "alpha", "credits": "12.5"}`"""
    gateway.credits(value["member"])
    gateway.set_credits(value["member"], units_of(Decimal(str(value["credits"]))))
    return {value["member"]: credit_text(gateway.credits(value["member"]))}


async def _gates(gateway: "Gateway", value: Any, _query: Mapping[str, str]) -> Any:
    """`{"open": "a"}` opens a gate; `{"wait": "a", "waiting": 1}` answers once that many are held."""
    if "wait" in value:
        await gateway.wait_for_gate(value["wait"], int(value.get("waiting", 1)))
    if "open" in value:
        gateway.open_gate(value["open"])
    return {"gates_waiting": gateway.gates.waiting}


async def _raw(gateway: "Gateway", value: Any, _query: Mapping[str, str]) -> Any:
    """A recording: `name`, `body` (text) or `base64`, optionally `status`, `headers`, `split`, `past_http`."""
    body = base64.b64decode(value["base64"]) if "base64" in value else value["body"].encode()
    split = int(value.get("split") or len(body) or 1)
    pieces = tuple(body[start : start + split] for start in range(0, len(body), split))
    given = value.get("headers", {"Content-Type": "text/event-stream"})
    headers = tuple((str(name), str(text)) for name, text in given.items())
    past_http = bool(value.get("past_http", False))
    gateway.recordings[value["name"]] = Recording(pieces, int(value.get("status", 200)), headers, past_http)
    return {"recordings": sorted(gateway.recordings)}


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


Control = Callable[["Gateway", Any, Mapping[str, str]], Awaitable[Any]]

# fmt: off
CONTROLS: Final[Mapping[tuple[str, str], Control]] = {
    ("GET",    "journal"): _journal,
    ("GET",    "state"):   _state,
    ("GET",    "faults"):  _faults,
    ("POST",   "faults"):  _arm,
    ("DELETE", "faults"):  _disarm,
    ("POST",   "reset"):   _reset,
    ("POST",   "credits"): _credits,
    ("POST",   "gates"):   _gates,
    ("POST",   "raw"):     _raw,
}
# fmt: on
