"""The calls of the admin API, as one table: the listener serves it, commands ask by it."""

from typing import Any, Final

from proxy.admin import budgets, cache, explain, keys, ledger, policies, reconciliation, usage
from proxy.admin.call import Asked, Refused, Row
from proxy.server.parts import Parts

_ADJUST: Final = ("credits", "reason", "who", "budget", "team", "key", "model", "route")
_KEY: Final = ("team", "id", "expires", "note", "replaces", "overlap")
_PURGE: Final = ("team", "model", "route", "older_than", "all")
_RESOLVE: Final = ("hold", "credits", "reason", "who", "force")

# fmt: off
CALLS: Final[tuple[Row, ...]] = (
    Row("GET",  "/api/policy",          policies.show,    "the policy in force, rule by rule"),
    Row("POST", "/api/explain",         explain.explain,  "what would become of a request, without sending it", takes=None),
    Row("GET",  "/api/budgets",         budgets.show_all, "every budget and its accounts"),
    Row("GET",  "/api/budgets/{name}",  budgets.show,     "one budget"),
    Row("POST", "/api/budgets/adjust",  ledger.adjust,    "correct by hand what was spent", changes=True, takes=_ADJUST),
    Row("GET",  "/api/usage",           usage.show,       "what was spent, by team, key, model, route, suite, tool or day"),
    Row("GET",  "/api/keys",            keys.show,        "all virtual keys and how they stand"),
    Row("POST", "/api/keys",            keys.issue,       "issue a virtual key, or one that replaces another", changes=True, takes=_KEY),
    Row("DELETE", "/api/keys/{id}",     keys.revoke,      "revoke a virtual key", changes=True),
    Row("GET",  "/api/ledger/verify",   ledger.verify,    "whether the books add up"),
    Row("GET",  "/api/ledger/entries",  ledger.entries,   "the entries, page by page"),
    Row("POST", "/api/ledger/backup",   ledger.backup,    "copy the ledger into a file beside it", changes=True),
    Row("GET",  "/api/ledger/doubts",   ledger.doubts,    "calls whose cost only the gateway knows"),
    Row("POST", "/api/ledger/resolve",  ledger.resolve,   "say what such a call has cost", changes=True, takes=_RESOLVE),
    Row("GET",  "/api/cache",           cache.stats,      "how much is stored of earlier answers"),
    Row("GET",  "/api/cache/entries",   cache.entries,    "the largest stored answers, without what they say"),
    Row("POST", "/api/cache/purge",     cache.purge,      "take stored answers away", changes=True, takes=_PURGE),
    Row("GET",  "/api/reconcile",       reconciliation.show,    "the gateway's balance beside the ledger, as last compared"),
    Row("POST", "/api/reconcile",       reconciliation.compare, "ask the gateway now, and compare", changes=True, takes=("anew",)),
)
# fmt: on


async def ask(method: str, path: str, asked: Asked, parts: Parts) -> Any:
    """The answer to one call, without HTTP. asked.values are read from the path. Raises Refused."""
    for row in CALLS:
        if (values := row.values(method, path)) is not None:
            row.refuse_unknown(asked.body)
            return await row.answer(Asked(values, asked.query, asked.body), parts)
    raise Refused(404, f"there is no {method} {path}")


def changes(method: str, path: str) -> bool:
    """Whether a call changes something."""
    return any(row.changes and row.values(method, path) is not None for row in CALLS)
