"""How the page writes figures: amounts short, instants with how far they are, sizes and spans in words."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from proxy.admin.page.markup import Html, tag

_SPANS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def amount(credit_text: str | None) -> str:
    """Credits with at most four figures after the point; what is smaller is said to be so. The exact one is in JSON."""
    if credit_text is None:
        return "–"
    value = Decimal(credit_text)
    if value and abs(value) < Decimal("0.0001"):
        return "under 0.0001"
    places = 0 if abs(value) >= 10_000 else 2 if abs(value) >= 10 else 4
    shown = f"{value:,.{places}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def span(seconds: float) -> str:
    """The two largest units: `3 d 4 h`."""
    left, said = round(abs(seconds)), []
    for size, word in _SPANS:
        if left >= size:
            said.append(f"{left // size} {word}")
            left %= size
        elif said:
            break
    return " ".join(said[:2]) or "0 s"


def instant(at: str | None, now_s: float) -> Html | str:
    """An ISO instant with how far it is from now."""
    if at is None:
        return "never"
    at_s = datetime.fromisoformat(at).timestamp()
    said = f"in {span(at_s - now_s)}" if at_s > now_s else f"{span(now_s - at_s)} ago"
    return tag("time", said, datetime=at, title=at)


def place(source: str) -> Html:
    """Where a rule stands: the file's name, line and column, and the whole path for who asks."""
    return tag("code", source.rpartition("/")[2] or "built in", title=source or None, class_="place")


def charged_by(basis: str | None, stands: str | None) -> str:
    """What a charge was computed from and where its price stands, such as `usage, team.yaml:7:5`; else ""."""
    return ", ".join(dict.fromkeys(word for word in (basis, (stands or "").rpartition("/")[2]) if word))


def size(count: int) -> str:
    """Bytes in binary units."""
    value, unit = float(count), "B"
    for bigger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, bigger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def counted(count: int, word: str) -> str:
    """`1 team`, `2 teams`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def number(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)
