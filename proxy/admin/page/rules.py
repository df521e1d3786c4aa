"""The policies in force, rule by rule with its place, and what was wrong with the files when they were last read."""

from typing import Any, Final

from proxy.admin import policies
from proxy.admin.call import Asked
from proxy.admin.page.frame import Page, Row, choices, section, table
from proxy.admin.page.markup import Html, tag, text
from proxy.admin.page.words import counted, place
from proxy.server.parts import Parts
from proxy.units import instant_text

APART: Final = frozenset({"price"})
"""Rules that have a page of their own."""


async def read(asked: Asked, parts: Parts) -> dict[str, Any]:
    """Query: kind."""
    said = await policies.show(asked, parts)
    kind, problems = asked.query.get("kind", ""), parts.state.problems
    rules = [rule for rule in said["rules"] if rule["kind"] not in APART]
    kinds = sorted({rule["kind"] for rule in rules})
    return {
        "at": instant_text(parts.wall()),
        "sentence": _sentence(len(problems), len(rules), said["policies"]),
        "policies": said["policies"],
        "digest": parts.state.policy.digest,
        "problems": list(problems),
        "kind": kind,
        "kinds": kinds,
        "rules": [rule for rule in rules if kind in ("", rule["kind"])],
    }


def _sentence(problems: int, rules: int, folder: str) -> str:
    if problems:
        mistakes = counted(problems, "mistake")
        return f"When {folder} was last read it had {mistakes}; the {rules} rules from before are in force."
    return f"{rules} rules are in force, read from {folder}."


def show(said: dict[str, Any], _: float) -> Page:
    form = tag(
        "form",
        choices("kind", "kind", said["kinds"], said["kind"]),
        tag("p", tag("button", "Show", type="submit")),
        method="get",
        action="/policies",
    )
    rows = (Row([one["name"], one["kind"], _words(one["words"]), place(one["source"])]) for one in said["rules"])
    head = ["name", "kind", "says", "where"]
    problems = section("Mistakes", tag("ul", (tag("li", tag("code", one)) for one in said["problems"]), id="problems"))
    body = text(
        problems if said["problems"] else None,
        section("Filter", form),
        section("Rules", table("rules", "Rules in force, with file, line and column", head, rows)),
    )
    return Page("Policies", said["sentence"], body, "/policies")


def _words(words: dict[str, Any]) -> Html:
    return text(
        (tag("span", f"{name.replace('_', ' ')}: ", tag("b", _said(value)), class_="word"), " ")
        for name, value in words.items()
    )


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_said(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_said, value)) or "none"
    if value is None:
        return "–"
    return "yes" if value is True else "no" if value is False else str(value)
