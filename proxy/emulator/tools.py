"""The tool suites: what each holds, whether the organization may use it, and the pure functions behind the tools."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final


class Access(Enum):
    """Who may call a suite through the gateway."""

    OPEN = "open"
    APP_ONLY = "app only"
    DISABLED = "disabled by the organization"


class ToolError(Exception):
    """A tool ran and failed: `isError` in its result."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `fields` maps each argument to its JSON type; all are required unless named in `optional`."""

    name: str
    description: str
    fields: Mapping[str, str]
    run: Callable[..., str]
    optional: frozenset[str] = frozenset()
    read_only: bool = True

    def listed(self) -> dict[str, Any]:
        required = [name for name in self.fields if name not in self.optional]
        schema = {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in self.fields.items()},
            "required": required,
            "additionalProperties": False,
        }
        hints = {"readOnlyHint": self.read_only, "destructiveHint": not self.read_only, "idempotentHint": True,
                 "openWorldHint": False}  # fmt: skip
        return {"name": self.name, "description": self.description, "inputSchema": schema, "annotations": hints}


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    description: str
    tools: Mapping[str, Tool] = field(default_factory=dict)
    access: Access = Access.OPEN


PAGES: Final[Mapping[str, str]] = {
    "budgets": "A budget says how many credits a team may spend in a month. It is a ceiling.",
    "gates": "A gate holds the water back until the level is right. 수문은 물을 막는다.",
    "herons": "Herons stand in shallow water and wait for their turn.",
    "locks": "A lock lifts a boat from one level to the next. Boats wait in a queue.",
    "mills": "A mill turns when the gate is open and stops when it is shut.",
}
"""The whole corpus of the `docs` suite."""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _divide(a: float, b: float) -> str:
    if b == 0:
        raise ToolError("division by zero")
    return _number(a / b)


def _search(query: str, limit: int = 10) -> str:
    words = query.lower().split()
    found = [name for name, text in PAGES.items() if all(word in f"{name} {text}".lower() for word in words)]
    return "\n".join(found[: max(0, limit)]) or "nothing found"


def _fetch(page: str) -> str:
    if page not in PAGES:
        raise ToolError(f"there is no page {page!r}")
    return PAGES[page]


def _delete_page(page: str) -> str:
    """Deleting is acknowledged and changes nothing: the suites keep no state."""
    _fetch(page)
    return f"deleted {page}"


def _count_words(text: str) -> str:
    return str(len(text.split()))


def _suite(name: str, description: str, *tools: Tool, access: Access = Access.OPEN) -> Suite:
    return Suite(name, description, {tool.name: tool for tool in tools}, access)


_TWO: Final = {"a": "number", "b": "number"}
_SEARCH: Final = {"query": "string", "limit": "integer"}

# fmt: off
SUITES: Final[Mapping[str, Suite]] = {suite.name: suite for suite in (
    _suite("calc", "Arithmetic",
        Tool("add",         "Add two numbers",              _TWO, lambda a, b: _number(a + b)),
        Tool("subtract",    "Subtract b from a",            _TWO, lambda a, b: _number(a - b)),
        Tool("multiply",    "Multiply two numbers",         _TWO, lambda a, b: _number(a * b)),
        Tool("divide",      "Divide a by b",                _TWO, _divide),
    ),
    _suite("docs", "A small library of pages",
        Tool("search",      "Names of pages with all words", _SEARCH, _search, frozenset({"limit"})),
        Tool("fetch",       "The text of a page",            {"page": "string"}, _fetch),
        Tool("delete_page", "Delete a page",                 {"page": "string"}, _delete_page, read_only=False),
    ),
    _suite("text", "Work on text",
        Tool("reverse",     "The text backwards",            {"text": "string"}, lambda text: text[::-1]),
        Tool("upper",       "The text in capitals",          {"text": "string"}, lambda text: text.upper()),
        Tool("count_words", "How many words the text has",   {"text": "string"}, _count_words),
    ),
    _suite("desktop", "Only inside the app", access=Access.APP_ONLY),
    _suite("mailbox", "Switched off by the organization", access=Access.DISABLED),
)}
# fmt: on

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {"string": (str,), "number": (int, float), "integer": (int,)}


def call_tool(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Run a tool on arguments that fit its schema; raises ToolError for what does not fit or fails."""
    for name in arguments:
        if name not in tool.fields:
            raise ToolError(f"Input validation error: {name!r} is not an argument of {tool.name}")
    for name, kind in tool.fields.items():
        value = arguments.get(name)
        if name not in arguments:
            if name not in tool.optional:
                raise ToolError(f"Input validation error: {name!r} is a required property")
        elif isinstance(value, bool) or not isinstance(value, _TYPES[kind]):
            raise ToolError(f"Input validation error: {value!r} is not of type {kind!r}")
    return tool.run(**arguments)
