"""Traffic for a simulation: described in YAML, or the log of a proxy, which is a recording without bodies."""

from collections.abc import Iterator
from datetime import datetime
from heapq import merge
from pathlib import Path
from random import Random
from typing import Annotated

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proxy.config.policymodel import Amount, Duration, Glob, Name
from proxy.config.problem import Problem, Problems
from proxy.config.yamlfile import read_yaml
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


def read_traffic(path: Path, seed: int) -> Iterator[Arrival]:
    """The calls of a file in order of time. Raises Problems. seed: the same one gives the same calls."""
    if path.suffix in (".yaml", ".yml"):
        return _described(path, seed)
    return iter(_recorded(path))


def _described(path: Path, seed: int) -> Iterator[Arrival]:
    file = read_yaml(path)
    try:
        said = TrafficModel.model_validate(file.tree)
    except ValidationError as error:
        found = []
        for fault in error.errors():
            steps = tuple(step for step in fault["loc"] if step != "[key]")
            found.append(Problem(file.place(steps), f"{'.'.join(map(str, steps))}: {fault['msg']}"))
        raise Problems(found) from error
    return merge(
        *(_coming(calls, said.lasts, Random(f"{seed} {index}")) for index, calls in enumerate(said.calls)),  # noqa: S311
        key=lambda arrival: arrival.at_s,
    )


def _coming(calls: CallsModel, lasts_s: float, chance: Random) -> Iterator[Arrival]:
    names = {name: getattr(calls, name) for name in ("team", "key", "route", "model", "suite", "tool", "chatbot")}
    facts = Facts(**names)
    method = "tools/call" if calls.tool is not None else None
    draw = Draw(facts, "", method, calls.route in RESERVING, calls.held > 0)
    at_s = calls.begins + chance.expovariate(calls.per_minute / 60)
    while at_s < min(lasts_s, calls.ends or lasts_s):
        yield Arrival(at_s, draw, calls.takes, calls.tokens, calls.held, calls.charged)
        at_s += chance.expovariate(calls.per_minute / 60)


def _recorded(path: Path) -> list[Arrival]:
    """Requests of a log in JSON that reached the queue. Raises Problems."""
    calls = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            event = orjson.loads(line)
            if event.get("event") != "request" or event.get("stage") in ("receive", "identify", "normalise", "decide"):
                continue
            calls.append(_call(event))
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            what = "is not a line of the proxy's log in JSON"
            raise Problems([Problem(f"{path}:{number}", what, "give serve --log-format json")]) from error
    calls.sort(key=lambda arrival: arrival.at_s)
    first_s = calls[0].at_s if calls else 0.0
    return [Arrival(one.at_s - first_s, one.draw, one.takes_s, 0, one.held, one.charged) for one in calls]


def _call(event: dict[str, object]) -> Arrival:
    ended_s = datetime.fromisoformat(str(event["time"])).timestamp()
    dur_s, waited_s = float(str(event["dur_s"])), float(str(event.get("waited_s", 0)))
    held = credits_of(str(event.get("held", 0)))
    route = str(event["route"])
    facts = Facts(str(event["team"]), str(event.get("key", "")), route, _text(event.get("model")))
    draw = Draw(facts, "", None, route in RESERVING, held > 0)
    charged = credits_of(str(event.get("charged", 0)))
    return Arrival(ended_s - dur_s, draw, max(0.0, dur_s - waited_s), 0, held, charged)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
