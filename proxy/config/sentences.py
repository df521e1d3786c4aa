"""What the checker of shapes finds, in words for the person who wrote the file."""

import json
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from proxy.config.policyvalues import NAME, SUITE_TOOL, TOOL_ALIAS
from proxy.config.problem import did_you_mean
from proxy.config.yamlfile import YamlFile
from proxy.config.yamltree import Fault, Steps

WordsAt = Callable[[Steps], Iterable[str]]


def faults_of(file: YamlFile, error: ValidationError, words_at: WordsAt) -> list[Fault]:
    """Everything that the checker found, in the order of the file. words_at: the keys that may stand under some."""
    found = []
    for details in error.errors(include_url=False):
        # A fault in a key of a mapping is marked by a last step that is no key of the file.
        steps = tuple(step for step in details["loc"] if step != "[key]")
        written = _written(file.tree, steps) if details["loc"] == steps else details["input"]
        what, do = _sentence(steps, details, written, words_at)
        found.append(Fault(steps, file.position(steps), what, do))
    return sorted(found, key=lambda fault: fault.at)


def _written(value: Any, steps: Steps) -> Any:
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


# fmt: off
_PATTERNS: Final = {
    NAME:       "is not a name: letters, digits and . _ - , at most 64, the first a letter or digit",
    TOOL_ALIAS: "is not a name for a tool: letters, digits, - and single _ , the first a letter or digit",
    SUITE_TOOL: "names no tool: write suite.tool, such as calc.add",
}
_KINDS: Final = {
    "model_type":        ("expected keys and values, not {}",    "write {{ word: value }}"),
    "dict_type":         ("expected keys and values, not {}",    "write {{ word: value }}"),
    "tuple_type":        ("expected a list, not {}",             "write it in brackets: [ … ]"),
    "string_type":       ("expected text, not {}",               'write it in quotes ("…")'),
    "bool_type":         ("expected true or false, not {}",      "write true or false, without quotes"),
    "int_type":          ("expected a whole number, not {}",     "write digits only, without quotes"),
    "int_from_float":    ("expected a whole number, not {}",     "write digits only"),
    "float_type":        ("expected a number, not {}",           "write it in digits, without quotes"),
    "string_too_short":  ("is empty",                            "say what it is, or leave it out"),
}
_BOUNDS: Final = {
    "greater_than":       ("gt", "is too small: it must be more than"),
    "greater_than_equal": ("ge", "is too small: it must be at least"),
    "less_than":          ("lt", "is too large: it must be less than"),
    "less_than_equal":    ("le", "is too large: it may be at most"),
}
# fmt: on
_IN_SECONDS: Final = frozenset({"wait_max", "within", "heartbeat", "expires_after", "ttl", "stale_if_error"})


def _sentence(steps: Steps, fault: ErrorDetails, written: Any, words_at: WordsAt) -> tuple[str, str]:
    """What is wrong and what to do."""
    kind, context = fault["type"], fault.get("ctx", {})
    last = str(steps[-1]) if steps else ""
    if kind == "string_type" and (last == "sha256" or steps[0] == "members"):
        # Whoever mistakes the field writes the key itself there.
        return "expected text", _KINDS[kind][1]
    if kind == "string_type" and isinstance(written, list | dict):
        return f"expected text, not {_shown(written)}", _one_of(last, written)
    if kind in _KINDS:
        what, do = _KINDS[kind]
        return what.format(_shown(written)), do.format()
    if kind in _BOUNDS:
        word, what = _BOUNDS[kind]
        bound = f"{context[word]:.15g}s" if last in _IN_SECONDS else f"{context[word]:,.15g}"
        return f"{_shown(written)} {what} {bound}", ""
    match kind:
        case "extra_forbidden" | "invalid_key":
            return "is not known", did_you_mean(last, words_at(steps[:-1]))
        case "missing":
            return "is missing", f"add {last}: …"
        case "enum" | "literal_error":
            words = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
            near = get_close_matches(str(written), words, n=1, cutoff=0.6)
            return f"{_shown(written)} is not one of {', '.join(words)}", f"did you mean {near[0]}?" if near else ""
        case "string_pattern_mismatch" if last == "sha256" or context["pattern"] not in _PATTERNS:
            return "is not a SHA-256 digest: 64 hexadecimal digits", "take that of the key: printf %s KEY | sha256sum"
        case "string_pattern_mismatch":
            return _PATTERNS[context["pattern"]], ""
        case "string_too_long":
            return f"is longer than {context['max_length']} characters", "write less"
        case "value_error":
            what, *more = context["error"].args
            return str(what), str(more[0]) if more else ""
        case _:
            message = fault["msg"]
            return message[0].lower() + message[1:], ""


_BARE: Final = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
"""Text that YAML reads as text without quotes."""


def _one_of(word: str, written: list[Any] | dict[Any, Any]) -> str:
    """How the one text is written that is wanted in place of several."""
    first = next((one for one in written if isinstance(one, str) and one), None) if isinstance(written, list) else None
    if first is None or word.isdigit():
        return "write one text"
    example = first if _BARE.fullmatch(first) else json.dumps(first, ensure_ascii=False)
    return f"only one is wanted here: write {word}: {example}"


def _shown(value: Any) -> str:
    """What stands in the file, in short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "keys and values" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
