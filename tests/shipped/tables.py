"""The tables of README.md, made from the tables of the code.

`python -m tests.shipped.tables` writes them between their markers; a test compares.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from proxy.cli.main import COMMANDS
from proxy.config.settings import SETTINGS
from proxy.observe.metrics import described

README: Final = Path(__file__).parents[2] / "README.md"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def settings() -> str:
    return table(
        ["flag", "environment", "default", "what it does"],
        ([code(row.flag), code(row.variable), code(row.default or ""), row.help] for row in SETTINGS),
    )


def commands() -> str:
    return table(["command", "what it does"], ([code(f"sluicegate {row.name}"), row.help] for row in COMMANDS))


def metrics() -> str:
    rows = ([code(name), kind, labels, says] for name, kind, labels, says in described())
    return table(["metric", "type", "labels", "what it tells"], rows)


def routes() -> str:
    from proxy.server.routes import ROUTES

    rows = (
        [
            row.name,
            row.method,
            code(f"/{row.path}"),
            row.says,
            code(f"/v1/gateway/{row.upstream}") if row.upstream else "",
        ]
        for row in ROUTES
    )
    return table(["route", "method", "path", "what it is", "at the gateway"], rows)


def api() -> str:
    from proxy.admin.table import CALLS

    return table(["method", "path", "what it is"], ([row.method, code(row.path), row.says] for row in CALLS))


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "settings": settings,
    "routes": routes,
    "commands": commands,
    "api": api,
    "metrics": metrics,
}


def marked(text: str, name: str) -> re.Match[str]:
    """The part of a page between the two markers of a table."""
    found = re.search(rf"(?<=<!-- {name} -->\n\n)(.*?)(?=\n\n<!-- /{name} -->)", text, re.DOTALL)
    assert found, f"README.md has no place for {name}"
    return found


def write() -> None:
    text = README.read_text("utf-8")
    for name, made in TABLES.items():
        place = marked(text, name)
        text = text[: place.start()] + made() + text[place.end() :]
    README.write_text(text, "utf-8")


if __name__ == "__main__":
    write()
