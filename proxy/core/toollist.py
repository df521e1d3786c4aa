"""What a suite's answer to `tools/list` says: its tools, which a team may see, and what guards cached calls. Pure.

An answer is taken apart only where something has to be left out; fields that nobody here knows stay as they came.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

import orjson

from proxy.core.mirrored import Mirror, WrongMark, mirrors
from proxy.core.splice import members, removal, splice

LIST: Final = "tools/list"
CALL: Final = "tools/call"

NAME_MAX: Final = 64
"""Characters of a tool's name that models and clients take, of letters, digits, `_` and `-`."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool as its suite listed it.

    digest:  of all that was said of it, without regard to order.
    changes: it says of itself that it changes something, so no answer of it is given twice.
    mirrors: arguments that clients of the newer revision repeat in their header.
    wrong:   why such clients must not be shown it, "" where they may.
    """

    digest: str
    changes: bool
    mirrors: tuple[Mirror, ...] = ()
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to `tools/list`. cursor: where the next page begins, None on the last one."""

    tools: tuple[Mapping[str, Any], ...]
    cursor: str | None


def page_of(message: bytes) -> Page | None:
    """The list in a JSON-RPC answer; None where there is none."""
    try:
        tree = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    result = tree.get("result") if isinstance(tree, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(tools, list):
        return None
    cursor = result.get("nextCursor")
    named = tuple(tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str))
    return Page(named, cursor if isinstance(cursor, str) else None)


def definition(tool: Mapping[str, Any]) -> Definition:
    """What a cached call depends on. Hints only forbid: they are their author's word, and may say too much."""
    hints = tool.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    reads = hints.get("readOnlyHint")
    changes = reads is False or (hints.get("destructiveHint") is True and reads is not True)
    digest = sha256(orjson.dumps(tool, option=orjson.OPT_SORT_KEYS)).hexdigest()
    try:
        return Definition(digest, changes, mirrors(tool.get("inputSchema")))
    except WrongMark as wrong:
        return Definition(digest, changes, wrong=str(wrong))


def definitions(tools: Iterable[Mapping[str, Any]]) -> dict[str, Definition]:
    """What is said of each tool, by name. One that is listed twice is the first; the hints of either forbid."""
    found: dict[str, Definition] = {}
    for tool in tools:
        name, new = tool["name"], definition(tool)
        if (old := found.get(name)) is not None and old.digest != new.digest:
            both = sha256(f"{old.digest}{new.digest}".encode()).hexdigest()
            new = replace(old, digest=both, changes=old.changes or new.changes, wrong=old.wrong or new.wrong)
        found[name] = new
    return found


def only(message: bytes, may: Callable[[str], bool]) -> bytes:
    """The answer with the tools of which `may` is true of the name; the same bytes where that is all of them."""
    tree = orjson.loads(message)
    tools = tree["result"]["tools"]
    kept = [tool for tool in tools if isinstance(tool, dict) and may(str(tool.get("name")))]
    if len(kept) == len(tools):
        return message
    tree["result"]["tools"] = kept
    return orjson.dumps(tree)


def asked(body: bytes) -> bytes:
    """The params of a judged JSON-RPC request as they were written, without `_meta`, which differs in every call."""
    found = members(body).get("params")
    params = b"{}" if found is None else body[found.start : found.end]
    if not params.startswith(b"{"):
        return params
    meta = members(params).get("_meta")
    return params if meta is None else splice(params, [removal(params, meta)])


def is_first_page(body: bytes) -> bool:
    """Whether a judged `tools/list` request asks from the beginning."""
    params = asked(body)
    return not params.startswith(b"{") or "cursor" not in members(params)


def public_name(suite: str, tool: str) -> str:
    """The name of a tool where those of all suites are listed: `suite__tool`, whatever other suites there are.

    It can be read in one way only: what could be read in two, is too long, or has other characters than clients take,
    ends in a digest instead.
    """
    plain = f"{suite}__{tool}"
    clear = "__" not in suite and not suite.endswith("_") and suite and tool
    if clear and len(plain) <= NAME_MAX and not _NOT_IN_NAMES.search(plain):
        return plain
    mark = sha256(f"{suite}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{_NOT_IN_NAMES.sub('_', plain)[: NAME_MAX - 11]}-{mark}"


_MARKED: Final = re.compile(r".*-[0-9a-f]{10}", re.DOTALL)


def owner_of(public: str) -> str | None:
    """The one suite that could have a tool of this public name, "" for no suite; None where it may be any."""
    return None if _MARKED.fullmatch(public) else public.partition("__")[0] if "__" in public else ""


def stood_for(suite_tool: str) -> tuple[str, str]:
    """Suite and tool of what an alias stands for; the first dot is between them."""
    suite, _, tool = suite_tool.partition(".")
    return suite, tool


def merged(
    lists: Iterable[tuple[str, Iterable[Mapping[str, Any]]]], aliases: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The tools of all suites under their public names, by suite and then in the suite's own order.

    One that its suite lists twice stands here once: models are given no two tools of one name.

    aliases: names of ours and the `suite.tool` each stands for; such a tool is listed under its alias alone.
    """
    named = {stood_for(stands_for): alias for alias, stands_for in aliases.items()}
    found: dict[str, dict[str, Any]] = {}
    for suite, tools in sorted(lists, key=lambda entry: entry[0]):
        for tool in tools:
            name = named.get((suite, tool["name"])) or public_name(suite, tool["name"])
            found.setdefault(name, {**tool, "name": name})
    return list(found.values())
