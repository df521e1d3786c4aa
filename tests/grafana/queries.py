"""The queries of dashboard and rules, and what they name."""

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from grafana.build import ROWS
from proxy.observe.metrics import METRICS

GRAFANA = Path(__file__).parents[2] / "grafana"
PANELS = [(row, panel) for row, panels in ROWS for panel in panels]
QUERIES = [(panel.title, expr) for _, panel in PANELS for expr, _ in panel.queries]
RULES: list[dict[str, Any]] = [
    rule
    for group in YAML(typ="safe").load((GRAFANA / "alerts.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]
KNOWN = {f"sluicegate_{row.name}" for row in METRICS}

_SELECTOR = re.compile(r"\b(?:sluicegate|process)_[a-z_]+(?:\{[^}]*\})?|\bup\{[^}]*\}")
_PARTS = re.compile(r"_(bucket|sum|count)$")


def selectors(expr: str) -> list[str]:
    return _SELECTOR.findall(expr)


def metrics(expr: str) -> set[str]:
    """The catalogue's names of what an expression asks for."""
    names = {selector.partition("{")[0] for selector in selectors(expr)}
    return {name if name in KNOWN else _PARTS.sub("", name) for name in names if name.startswith("sluicegate_")}
