"""Traffic for a simulation: described in YAML, or the log of a proxy, which is a recording without bodies."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import merge
from pathlib import Path
from random import Random
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proxy.config.policyvalues import Amount, Duration, Glob, Name
from proxy.config.problem import Problem, Problems
from proxy.config.sentences import faults_of
from proxy.config.yamlfile import read_yaml
from proxy.config.yamltree import Steps
from proxy.core.facts import Facts
from proxy.core.limits import Draw
from proxy.core.simulation import Arrival
from proxy.units import Credits, credits_of

RESERVING = frozenset({"chat", "native", "responses", "chatbot", "speech", "music", "images", "videos"})
"""Routes for which the gateway reserves credits."""


class CallsModel(BaseModel):
    """Calls of one kind that come at random, at a rate that holds from one instant to another."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    team: Name = "default"
    key: Name = "key"
    route: Glob = "chat"
    model: Glob | None = None
    suite: Glob | None = None
    tool: Glob | None = None
    chatbot: Glob | None = None
    per_minute: Annotated[float, Field(gt=0, le=1_000_000)]
    begins: Annotated[Duration, Field(alias="from")] = 0.0
    ends: Annotated[Duration | None, Field(alias="to")] = None
    takes: Duration = 1.0
    tokens: Annotated[int, Field(ge=0)] = 0
    held: Amount = Credits(0)
    charged: Amount = Credits(0)


class TrafficModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    lasts: Annotated[Duration, Field(alias="for", gt=0)]
    calls: tuple[CallsModel, ...]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Calls in order of time.

    skipped: lines that tell of something else.      unasked: requests that asked for no turn, such as cache hits.
    begins_s: wall-clock instant of the first call, None where the traffic has none.
    """

    calls: Iterator[Arrival]
    skipped: int = 0
    unasked: int = 0
    begins_s: float | None = None


def read_traffic(path: Path, seed: int) -> Traffic:
    """The calls of a file. Raises Problems. seed: the same one gives the same calls."""
    return Traffic(_described(path, seed)) if path.suffix in (".yaml", ".yml") else _recorded(path)


def _described(path: Path, seed: int) -> Iterator[Arrival]:
    file = read_yaml(path)
    try:
        said = TrafficModel.model_validate(file.tree)
    except ValidationError as error:
        raise Problems(map(file.problem, faults_of(file, error, _words_at))) from error
    return merge(
        *(_coming(calls, said.lasts, Random(f"{seed} {index}")) for index, calls in enumerate(said.calls)),  # noqa: S311
        key=lambda arrival: arrival.at_s,
    )


def _words_at(steps: Steps) -> list[str]:
    """The keys that may stand there, as they are written."""
    model = CallsModel if steps else TrafficModel
    return [said.alias or name for name, said in model.model_fields.items()]


def _coming(calls: CallsModel, lasts_s: float, chance: Random) -> Iterator[Arrival]:
    names = {name: getattr(calls, name) for name in ("team", "key", "route", "model", "suite", "tool", "chatbot")}
    facts = Facts(**names)
    method = "tools/call" if calls.tool is not None else None
    draw = Draw(facts, "", method, calls.route in RESERVING, calls.held > 0)
    at_s = calls.begins + chance.expovariate(calls.per_minute / 60)
    while at_s < min(lasts_s, calls.ends or lasts_s):
        yield Arrival(at_s, draw, calls.takes, calls.tokens, calls.held, calls.charged)
        at_s += chance.expovariate(calls.per_minute / 60)


def _recorded(path: Path) -> Traffic:
    """Requests of a log in JSON that asked for a turn. Raises Problems."""
    calls, skipped, unasked = [], 0, 0
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        event = _event(line)
        if event is None or event.get("event") != "request":
            skipped += 1
        elif "asked_at" not in event:
            unasked += 1
        else:
            try:
                calls.append(_call(event))
            except (ValueError, KeyError, TypeError) as error:
                what = f"is no request as the proxy logs them: {error}"
                raise Problems([Problem(f"{path}:{number}", what)]) from error
    if not calls:
        raise Problems([Problem(str(path), "has no request that asked for a turn", "give serve --log-format json")])
    calls.sort(key=lambda arrival: arrival.at_s)
    begins_s = calls[0].at_s
    moved = (replace(one, at_s=one.at_s - begins_s) for one in calls)
    return Traffic(moved, skipped, unasked, begins_s)


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = orjson.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _call(event: dict[str, Any]) -> Arrival:
    held = credits_of(str(event.get("held", 0)))
    route, method = str(event["route"]), event.get("method")
    facts = Facts(
        str(event["team"]),
        str(event.get("key", "")),
        route,
        model=None if route == "chatbot" else event.get("model"),
        suite=event.get("suite"),
        tool=event.get("tool"),
        chatbot=event.get("chatbot"),
    )
    draw = Draw(facts, str(event.get("member", "")), method, route in RESERVING, held > 0)
    at_s, waited_s = float(event["asked_at"]), float(event.get("waited_s", 0))
    ended_s = datetime.fromisoformat(str(event["time"])).timestamp()
    took_s = float(event.get("upstream_s", ended_s - at_s - waited_s))
    used = None if "output" not in event else int(event["input"]) + int(event["output"])
    return Arrival(
        at_s,
        draw,
        max(0.0, took_s),
        int(event.get("ceiling", 0)),
        held,
        credits_of(str(event.get("charged", 0))),
        used,
        float(event["head_s"]) if "head_s" in event else None,
        float(event["wait_max_s"]) if "wait_max_s" in event else None,
    )
