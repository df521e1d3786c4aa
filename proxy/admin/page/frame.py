"""What every page has: its head, the way to the others, and tables and facts in one form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from proxy import __version__
from proxy.admin.page.markup import Html, tag

NAVIGATION: Final = (
    ("/", "Overview"),
    ("/requests", "Requests"),
    ("/cache", "Cache"),
    ("/policies", "Policies"),
    ("/upstream", "Upstream"),
    ("/models", "Models and prices"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """What one page shows. sentence: what matters on it, in one. at: where it stands among the others."""

    title: str
    sentence: str
    body: Html
    at: str = ""


def document(page: Page, twin: str) -> Html:
    """The whole of a page. twin: the path of the same figures as JSON."""
    ways = (
        tag("li", tag("a", name, href=path, aria_current="page" if path == page.at else None))
        for path, name in NAVIGATION
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{page.title} – Sluicegate"),
        tag("link", rel="stylesheet", href="/page/style.css"),
        tag("link", rel="icon", href="/page/icon.svg", type="image/svg+xml"),
        tag("script", src="/page/page.js", defer=True),
    )
    body = tag(
        "body",
        tag("a", "To the content", href="#content", class_="skip"),
        tag("header", tag("p", "Sluicegate", class_="name"), tag("nav", tag("ul", ways), aria_label="Pages")),
        tag(
            "main",
            tag("h1", page.title),
            tag("p", page.sentence, id="sentence", class_="sentence", role="status"),
            page.body,
            id="content",
            tabindex="-1",
        ),
        tag("footer", tag("p", f"Sluicegate {__version__} · ", tag("a", "these figures as JSON", href=twin))),
    )
    return Html("<!doctype html>" + tag("html", head, body, lang="en"))


def section(title: str, *children: Any) -> Html:
    name = title.lower().replace(" ", "-")
    return tag("section", tag("h2", title, id=name), *children, aria_labelledby=name)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: its cells, and how it stands (`exhausted`, `runs_out`, `warned`, `refused`, "")."""

    cells: Sequence[Any]
    state: str = ""


def table(name: str, says: str, head: Sequence[str], rows: Iterable[Row], figures: Iterable[int] = ()) -> Html:
    """A table that scrolls by itself where it is too wide. name: its id. figures: numbers of columns of figures."""
    right, lines = frozenset(figures), list(rows)
    if not lines:
        return tag("p", tag("span", "Nothing yet.", id=name), class_="nothing")

    def cells(line: Row) -> Iterable[Html]:
        for at, cell in enumerate(line.cells):
            kind = "figure" if at in right else None
            yield tag("th", cell, scope="row") if at == 0 else tag("td", cell, class_=kind)

    titles = (tag("th", title, scope="col", class_="figure" if at in right else None) for at, title in enumerate(head))
    body = (tag("tr", cells(line), class_=line.state or None) for line in lines)
    whole = tag("table", tag("caption", says), tag("thead", tag("tr", titles)), tag("tbody", body, id=name))
    return tag("div", whole, class_="wide", role="region", aria_label=says, tabindex=0)


def facts(pairs: Mapping[str, Any], name: str) -> Html:
    """Names and what they are, as a list."""
    return tag("dl", ((tag("div", tag("dt", key), tag("dd", value))) for key, value in pairs.items()), id=name)


def team_link(team: str | None) -> Any:
    return "–" if not team else tag("a", team, href=f"/team/{quote(team, safe='')}")


def state_word(trouble: str) -> Html:
    """How something stands, in a word, since colour alone tells not everybody."""
    words = {"exhausted": "used up", "runs_out": "runs out", "warned": "nearing", "fine": "fine"}
    return tag("span", words.get(trouble, trouble), class_=f"state {trouble}")


def choices(name: str, label: str, options: Iterable[str], chosen: str) -> Html:
    """One filter of a form."""
    known = sorted({option for option in options if option} | ({chosen} if chosen else set()))
    every = tag("option", "all", value="", selected=not chosen)
    rest = (tag("option", option, value=option, selected=option == chosen) for option in known)
    return tag(
        "p", tag("label", label, for_=f"filter-{name}"), tag("select", every, rest, name=name, id=f"filter-{name}")
    )
