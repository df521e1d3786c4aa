"""The calls of the admin API, as one table: the listener serves it, commands ask by it."""

from typing import Any, Final

from proxy.admin import budgets, explain, policies
from proxy.admin.call import Asked, Refused, Row
from proxy.server.parts import Parts

# fmt: off
CALLS: Final[tuple[Row, ...]] = (
    Row("GET",  "/api/policy",          policies.show,    "the policy in force, rule by rule"),
    Row("POST", "/api/explain",         explain.explain,  "what would become of a request, without sending it"),
    Row("GET",  "/api/budgets",         budgets.show_all, "every budget and its accounts"),
    Row("GET",  "/api/budgets/{name}",  budgets.show,     "one budget"),
)
# fmt: on


async def ask(method: str, path: str, asked: Asked, parts: Parts) -> Any:
    """The answer to one call, without HTTP. asked.values are read from the path. Raises Refused."""
    for row in CALLS:
        if (values := row.values(method, path)) is not None:
            return await row.answer(Asked(values, asked.query, asked.body), parts)
    raise Refused(404, f"there is no {method} {path}")
