"""One page of groups: the filters, the search, the order and the numbers of the overview."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from proxy.emulator.groups.records import Group, Refusal
from proxy.emulator.groups.views import used_month, utilization

PAGE_DEFAULT: Final = 1
SIZE_DEFAULT: Final = 100
ORDER_DEFAULT: Final = "name.asc"

ORDERS: Final[Mapping[str, Callable[[Group], Any]]] = {
    "name": lambda group: group.en_name,
    "credit_used_month": used_month,
    "utilization": utilization,
}


def page_of(groups: Iterable[Group], query: Mapping[str, str], show: Callable[[Group], dict[str, Any]]) -> Any:
    """The page the query asks for; only its rows are made."""
    page, size = _from_1(query, "page", PAGE_DEFAULT), _from_1(query, "size", SIZE_DEFAULT)
    field, _, direction = query.get("order_by", ORDER_DEFAULT).partition(".")
    if field not in ORDERS or direction not in ("asc", "desc"):
        raise Refusal(400, f"order_by must be one of {', '.join(ORDERS)} with .asc or .desc")
    found = [group for group in groups if _fits(group, query)]
    found.sort(key=ORDERS[field], reverse=direction == "desc")
    pages = {"page": page, "total_pages": -(-len(found) // size), "total_items": len(found)}
    return {"results": [show(group) for group in found[(page - 1) * size : page * size]], "pagination": pages}


_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")


def whole(text: str | None) -> int | None:
    """A whole number of a query, as it is written in JSON."""
    if text is not None and _WHOLE.fullmatch(text) is None:
        raise Refusal(400, f"{text[:40]!r} is not an integer")
    return None if text is None else int(text)


def _fits(group: Group, query: Mapping[str, str]) -> bool:
    kind, parent = whole(query.get("member_group_type_id")), whole(query.get("parent_id"))
    term = query.get("search_term", "").lower()
    named = term in group.ko_name.lower() or term in group.en_name.lower()
    return named and kind in (None, group.type_id) and parent in (None, group.parent_id)


def _from_1(query: Mapping[str, str], name: str, default: int) -> int:
    value = whole(query.get(name, str(default)))
    assert value is not None
    if value < 1:
        raise Refusal(400, f"{name} counts from 1")
    return value
