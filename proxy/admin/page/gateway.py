"""The gateway as it is seen from here: balance and drift, what runs there, and how it failed."""

from typing import Any, Final

from proxy.admin import reconciliation
from proxy.admin.call import Asked
from proxy.admin.page.frame import Page, Row, facts, section, table
from proxy.admin.page.markup import text
from proxy.admin.page.words import amount, instant, number
from proxy.server.parts import Parts
from proxy.units import instant_text

VERDICTS: Final = {
    "agrees": "the balance fell by what the ledger settled",
    "foreign": "somebody else spends on this member, or calls in doubt were charged",
    "overbooked": "the ledger settled more than the balance fell by",
}


async def read(asked: Asked, parts: Parts) -> dict[str, Any]:
    compared = await reconciliation.show(asked, parts)
    errors = parts.metrics.rows("upstream_errors_total")
    return {
        "at": instant_text(parts.wall()),
        "sentence": _sentence(parts, compared),
        "gateway": str(parts.settings.upstream or ""),
        "key_refused": parts.state.key_refused,
        "open_calls": len(parts.exchanges.open),
        "reading_on": parts.exchanges.reading_on,
        "open_operations": {
            kind: parts.metrics.total("operations_open", kind=kind) for kind in ("image", "video", "response")
        },
        "balance": {name: value for name, value in compared.items() if name not in ("unknown", "uncertain")},
        "doubts": len(compared["unknown"]) + len(compared["uncertain"]),
        "errors": [{"route": route, "reason": reason, "count": count} for (route, reason), count in errors if count],
    }


def _sentence(parts: Parts, compared: dict[str, Any]) -> str:
    if parts.state.key_refused:
        return "The gateway refuses our key; replace it in its file or in the environment."
    if not compared["compared"]:
        return "The gateway's balance was not compared with the ledger yet."
    return f"Balance {amount(compared['balance'])} credits: {VERDICTS[compared['verdict']]}."


def show(said: dict[str, Any], now_s: float) -> Page:
    balance = said["balance"]
    now = {
        "gateway": said["gateway"] or "none",
        "key": "refused" if said["key_refused"] else "not refused",
        "open calls": number(said["open_calls"]),
        "read on for callers who left": number(said["reading_on"]),
        **{f"open {kind} operations": number(count) for kind, count in said["open_operations"].items()},
        "calls whose cost is in doubt": number(said["doubts"]),
    }
    money: dict[str, Any] = {"compared": "not yet"}
    if balance["compared"]:
        money = {
            "balance": amount(balance["balance"]),
            "fell by": amount(balance["fell"]),
            "settled meanwhile": amount(balance["settled"]),
            "drift": amount(balance["drift"]),
            "spent by others": amount(balance["foreign"]),
            "since": instant(balance["since"], now_s),
            "compared": instant(balance["until"], now_s),
        }
    rows = (Row([one["route"], one["reason"], number(one["count"])]) for one in said["errors"])
    says = "Calls that the gateway refused, broke off or never took, since the start"
    body = text(
        section("Now", facts(now, "now")),
        section("Balance and ledger", facts(money, "balance")),
        section("Failures", table("errors", says, ["route", "reason", "calls"], rows, (2,))),
    )
    return Page("Upstream", said["sentence"], body, "/upstream")
