"""`sluicegate explain`: what would become of a request, rule by rule, with file and line, without sending it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from proxy.cli.desk import desk_of, path_of, print_json, with_desk
from proxy.cli.requests import SAMPLES, Wanted, request_for


@click.command("explain")
@click.option(
    "-f",
    "--file",
    "request_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='A request as JSON: {"path", "method", "headers", "body", "team", "key"}; - is standard input.',
)
@click.option("--team", metavar="NAME", help="Who is imagined to call; else whoever the headers say.")
@click.option("--key", metavar="ID", help="The id of the caller's virtual key, never the key itself.")
@click.option("--route", type=click.Choice(list(SAMPLES)), default="chat", show_default=True, help="What is called.")
@click.option("--path", metavar="PATH", help="What is called, as a path; needs --body where the route has one.")
@click.option("--model", metavar="NAME", help="The model asked for.")
@click.option("--suite", metavar="NAME", help="The tool suite, with --route mcp.")
@click.option("--tool", metavar="NAME", help="The tool called, with --route mcp.")
@click.option("--chatbot", metavar="ID", help="The chatbot, with --route chatbot.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="The most output asked for.")
@click.option(
    "--body",
    "body_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The body, instead of the smallest one; - is standard input.",
)
@click.option("-H", "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header line; repeatable.")
@with_desk  # fmt: skip
def explain(as_json: bool, **given: Any) -> int:
    """Show what would become of a request: team, rules that match, ceiling, budgets and the binding one, and what the
    gateway would get. Nothing is sent. Exit 1 when it would be refused.

    sluicegate explain --team search --model gpt-4o --max-tokens 2000
    """
    asked = _asked(given)
    said = desk_of(given).post(path_of("explain"), asked)
    if as_json:
        print_json(said)
    else:
        from proxy.observe.log import printable

        print(*(printable(line) for line in _lines(said)), sep="\n")
    return 1 if said["refused"] else 0


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The request as the API takes it."""
    headers = dict(_header(line) for line in given["headers"])
    named = {name: given[name] for name in ("team", "key") if given[name] is not None}
    if given["request_file"] is not None:
        try:
            asked = json.loads(_read(given["request_file"]))
        except ValueError as error:
            raise click.ClickException(f"{given['request_file']} is not JSON: {error}") from error
        if not isinstance(asked, dict):
            raise click.ClickException(f"{given['request_file']} holds no JSON object")
    elif given["path"] is not None:
        _refuse_beside_path(given)
        body = None if given["body_file"] is None else _read(given["body_file"])
        asked = {"method": "GET" if body is None else "POST", "path": given["path"], "body": body}
    else:
        target = given["suite"] if given["route"] == "mcp" else given["chatbot"]
        wanted = Wanted(given["model"], given["max_tokens"], target, given["tool"])
        asked = request_for(given["route"], wanted, None if given["body_file"] is None else _read(given["body_file"]))
    return {**asked, **named, "headers": {**asked.get("headers", {}), **headers}}


def _refuse_beside_path(given: dict[str, Any]) -> None:
    """With --path the request is what path and body say; what would be passed over in silence is refused."""
    beside = [name for name in ("model", "suite", "tool", "chatbot", "max_tokens") if given[name] is not None]
    if click.get_current_context().get_parameter_source("route") is not ParameterSource.DEFAULT:
        beside.insert(0, "route")
    if beside:
        said = ", ".join(f"--{name.replace('_', '-')}" for name in beside)
        raise click.UsageError(
            f"{said} says nothing beside --path: put it into the body (--body), or leave --path out."
        )


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise click.UsageError("a header is NAME: VALUE")
    return name.strip(), value.strip()


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from error


def _lines(said: dict[str, Any]) -> Iterator[str]:
    request = said["request"]
    yield f"request   {request['method']} {request['path']}, route {request['route'] or 'unknown'}"
    yield f"caller    team {said['team'] or 'unknown'}, key {said['key'] or 'unknown'}{_unnamed(said['key'])}"
    for rule in said["rules"]:
        yield f"{rule['kind']:8}  {rule['name']}  ({rule['source']})"
    yield from _ceiling(said)
    yield from _limits(said)
    yield from _turn(said.get("turn"))
    if said["wait"]:
        yield f"wait      for {said['wait']['for']}, {said['wait']['at_most_s']:g} s at most"
    yield from _cache(said["cacheable"])
    yield from _verdict(said)


def _unnamed(key: str | None) -> str:
    from proxy.admin.explain import NO_KEY

    return " (none was named; name one with --key to see its accounts)" if key == NO_KEY else ""


def _ceiling(said: dict[str, Any]) -> Iterator[str]:
    ceiling = said["ceiling"]
    if ceiling is None:
        if not said["refused"]:
            yield "ceiling   nothing: the call spends no credits"
        return
    yield f"ceiling   {ceiling['credits']} credits, estimate {_estimate(ceiling)}"
    for term in ceiling["terms"]:
        per = "each" if term["per"] == 1 else f"per {term['per']:,}"
        yield f"          {term['count']:,} {term['what']} at {term['price']} {per} = {term['credits']}"


def _estimate(ceiling: dict[str, Any]) -> str:
    """How the text was counted, in words."""
    if ceiling["estimate"] == "strict":
        return "strict: a token a byte"
    if ceiling["estimate"] == "learned" and ceiling["learned_density"] is not None:
        return f"learned: at most {ceiling['learned_density']} tokens in 1,000 bytes"
    if ceiling["estimate"] == "learned":
        return "learned: too little is known yet, so a token in two bytes"
    return "bytes: a token in two bytes"


def _limits(said: dict[str, Any]) -> Iterator[str]:
    binding = said["binding"]
    for one in said["limits"]:
        whose = f" of {'/'.join(one['group'])}" if one["group"] else ""
        is_binding = binding is not None and [binding["name"], binding["group"]] == [one["name"], one["group"]]
        marks = [
            *(["binding"] if is_binding else []),
            *([] if one["acts"] else ["does not act"]),
            *([] if one["fits"] else ["does not fit"]),
        ]
        until = f", until {one['resets_at']}" if one["resets_at"] else ""
        figures = f"{one['left']} of {one['credits']} left ({one['spent']} spent, {one['held']} held)"
        yield f"limit     {one['name']}{whose}: {figures}{until}{' - ' + ', '.join(marks) if marks else ''}"


def _turn(turn: dict[str, Any] | None) -> Iterator[str]:
    """The rates the call draws on, and when its turn would be."""
    if turn is None:
        return
    for one in turn["rates"]:
        of = f" of {one['of']}" if one["of"] else ""
        taken = f"{one['used']} of {one['amount']} taken, {one['waiting']} wait"
        yield f"rate      {one['name']}{of}: {taken} ({one['source']})"
    if turn["starts_in_s"] != 0:
        starts = "nobody knows when" if turn["starts_in_s"] is None else f"in about {turn['starts_in_s']:g} s"
        yield f"turn      {starts}, held up by {turn['binding']}; {turn['at_most_s']:g} s at most"


def _cache(cacheable: dict[str, Any] | None) -> Iterator[str]:
    if cacheable is None:
        return
    if not cacheable["may"]:
        yield f"cache     no: {cacheable['why']}"
        return
    yield f"cache     for {cacheable['fresh_s']:g} s: {cacheable['why']}  ({cacheable['source']})"


def _verdict(said: dict[str, Any]) -> Iterator[str]:
    if said["answered_here"] is not None:
        yield f"verdict   answered here with {said['answered_here']}; the gateway is not asked"
    elif said["refused"]:
        refused = said["refused"]
        yield f"verdict   refused at {refused['stage']} with {refused['status']} {refused['reason']}"
        yield f"          {refused['message']}"
    elif said["cacheable"] and said["cacheable"]["stored"]:
        yield "verdict   would be answered from the cache, at no charge"
    else:
        yield "verdict   would be sent"
    if said["upstream"] and not said["refused"]:
        yield f"sent      {said['upstream']['method']} {said['upstream']['url']}"
        for name, value in said["upstream"]["headers"].items():
            yield f"          {name}: {value}"
        if said["upstream"]["body"] is not None:
            yield f"          {said['upstream']['body']}"
