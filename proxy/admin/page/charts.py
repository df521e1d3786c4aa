"""Charts as SVG, drawn here: bars by day, a burn beside its budget, and a bar of what is used.

Every chart has a sentence for who cannot see it, and colours differ in brightness as well as in hue.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proxy.admin.page.markup import Html, tag, text

WIDTH, HEIGHT, LEFT, BELOW = 640, 180, 56, 22
HUES: Final = 6
"""Series with a colour of their own; what is beyond them is summed up by who draws."""


@dataclass(frozen=True, slots=True)
class Series:
    """One row of figures, one for each column. Floats are for drawing only."""

    name: str
    values: Sequence[float]


def bars(series: Sequence[Series], columns: Sequence[str], says: str) -> Html:
    """Stacked bars, one for each column."""
    tops = [sum(one.values[at] for one in series) for at in range(len(columns))]
    most = _round_up(max(tops, default=0.0))
    wide = (WIDTH - LEFT) / max(1, len(columns))
    drawn = []
    for at, column in enumerate(columns):
        below = 0.0
        for hue, one in enumerate(series):
            high = one.values[at] / most * (HEIGHT - BELOW - 8)
            if high <= 0:
                continue
            y = HEIGHT - BELOW - below - high
            place = {"x": f"{LEFT + at * wide + wide * 0.15:.1f}", "y": f"{y:.1f}"}
            size = {"width": f"{wide * 0.7:.1f}", "height": f"{high:.1f}"}
            shown = tag("rect", **place, **size, class_=f"hue{hue}")
            drawn.append(tag("g", tag("title", f"{column}, {one.name}: {one.values[at]:,.4g}"), shown))
            below += high
        if at % max(1, len(columns) // 7) == 0:
            drawn.append(_word(column[5:], LEFT + at * wide + wide / 2, HEIGHT - 6, "middle"))
    return text(_chart([_scale(most), drawn], says), _legend([one.name for one in series]))


def burn(spent: Sequence[tuple[float, float]], limit: float, begins_s: float, ends_s: float, says: str) -> Html:
    """What was spent through a window, beside its limit and an even pace. spent: instants and sums so far."""
    most = _round_up(max(limit, spent[-1][1] if spent else 0.0))
    across = max(1.0, ends_s - begins_s)

    def point(at_s: float, value: float) -> str:
        x = LEFT + (at_s - begins_s) / across * (WIDTH - LEFT)
        return f"{min(max(x, LEFT), WIDTH):.1f},{HEIGHT - BELOW - value / most * (HEIGHT - BELOW - 8):.1f}"

    def line(points: Sequence[str], kind: str) -> Html:
        return tag("path", d="M" + " L".join(points), class_=kind)

    steps: list[str] = [point(begins_s, 0.0)]
    for (at_s, value), before in zip(spent, [0.0, *(value for _, value in spent)], strict=False):
        steps += [point(at_s, before), point(at_s, value)]
    lines = [
        line([point(begins_s, limit), point(ends_s, limit)], "limit"),
        line([point(begins_s, 0), point(ends_s, limit)], "pace"),
        line(steps, "spent"),
    ]
    return text(_chart([_scale(most), lines], says), _legend(["spent", "limit", "even pace"], kinds=True))


def meter(share: float, says: str) -> Html:
    """A bar of what is used, for a table's cell."""
    share = min(max(share, 0.0), 1.0)
    level = "full" if share >= 1 else "high" if share >= 0.8 else "low"
    bar = tag("rect", x=0, y=0, width=f"{share * 100:.1f}", height=10, class_=level)
    back = tag("rect", x=0, y=0, width=100, height=10, class_="back")
    return tag("svg", back, bar, class_="meter", viewBox="0 0 100 10", role="img", aria_label=says)


def _chart(drawn: object, says: str) -> Html:
    return tag("svg", drawn, class_="chart", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=says)


def _scale(most: float) -> list[Html]:
    found = []
    for share in (0.0, 0.5, 1.0):
        y = HEIGHT - BELOW - share * (HEIGHT - BELOW - 8)
        found.append(tag("line", x1=LEFT, x2=WIDTH, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        found.append(_word(f"{most * share:,.4g}", LEFT - 6, y + 4, "end"))
    return found


def _word(said: str, x: float, y: float, anchor: str) -> Html:
    return tag("text", said, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _legend(names: Sequence[str], *, kinds: bool = False) -> Html:
    marks = ["spent", "limit", "pace"] if kinds else [f"hue{at}" for at in range(len(names))]
    items = (tag("li", tag("span", class_=f"mark {mark}"), name) for mark, name in zip(marks, names, strict=True))
    return tag("ul", items, class_="legend")


def _round_up(value: float) -> float:
    """The next round figure, so that the scale reads well; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (len(f"{value:.0f}") - 1) if value >= 1 else 10.0 ** -len(f"{1 / value:.0f}")
    return next(step * power for step in (1, 2, 5, 10, 20, 50, 100) if step * power >= value)
