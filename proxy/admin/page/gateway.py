"""The gateway as it is seen from here: balance and drift, what runs there, and how it failed."""

from typing import Any, Final

from proxy.admin import reconciliation
from proxy.admin.call import Asked
from proxy.admin.page.charts import meter
from proxy.admin.page.frame import Page, Row, facts, section, table
from proxy.admin.page.markup import Html, text
from proxy.admin.page.words import amount, counted, instant, number, span
from proxy.core.gatename import QUIET
from proxy.server import waits
from proxy.server.parts import Parts
from proxy.units import instant_text

VERDICTS: Final = {
    "agrees": "the balance fell by what the ledger settled",
    "foreign": "somebody else spends on this member, or calls in doubt were charged",
    "overbooked": "the ledger settled more than the balance fell by",
}


async def read(asked: Asked, parts: Parts) -> dict[str, Any]:
    compared = await reconciliation.show(asked, parts)
    queue: dict[str, Any] = dict(waits.told(parts.queue.scheduler, parts.queue.now_s(), parts.queue.waiting_bytes))
    queue["shut"] = [
        # A member is known by the digest of its key; who reads this has no use for it.
        {
            "what": name.kind.value,
            "name": "" if name.kind in QUIET else name.words,
            "opens_in_s": in_s,
        }
        for name, in_s in parts.queue.scheduler.gates.all_shut(parts.queue.now_s()).items()
    ]
    queue["limits"] = [{**limit, "of": _of(limit)} for limit in queue["limits"]]
    doubts = [one["to_decide"] for kind in ("unknown", "uncertain") for one in compared[kind]]
    errors = parts.metrics.rows("upstream_errors_total")
    return {
        "at": instant_text(parts.wall()),
        "sentence": _sentence(parts, compared),
        "gateway": str(parts.settings.upstream or ""),
        "key_refused": parts.state.key_refused,
        "open_calls": len(parts.exchanges.open),
        "reading_on": len(parts.exchanges.readers),
        "open_operations": {
            kind: parts.metrics.total("operations_open", kind=kind) for kind in ("image", "video", "response")
        },
        "balance": {name: value for name, value in compared.items() if name not in ("unknown", "uncertain")},
        "doubts": sum(doubts),
        "doubts_at_nothing": len(doubts) - sum(doubts),
        "queue": queue,
        "errors": [{"route": route, "reason": reason, "count": count} for (route, reason), count in errors if count],
    }


def _of(limit: dict[str, Any]) -> str:
    """Whom an account is of, as far as it may be shown: digests of keys stay here."""
    return ", ".join(word[:12] for word in limit["of"].split("/") if word) or "all"


def _sentence(parts: Parts, compared: dict[str, Any]) -> str:
    if parts.state.key_refused:
        return "The gateway refuses our key; replace it in its file or in the environment."
    if shut := parts.queue.scheduler.gates.all_shut(parts.queue.now_s()):
        return (
            f"{counted(len(shut), 'part')} of the gateway {'is' if len(shut) == 1 else 'are'} left alone for a while."
        )
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
        "calls in doubt booked at 0": number(said["doubts_at_nothing"]),
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
        section("Limits in use", _limits(said["queue"])),
        section("Waiting", _lanes(said["queue"])),
        section("Left alone", _shut(said["queue"])),
        section("Balance and ledger", facts(money, "balance")),
        section("Failures", table("errors", says, ["route", "reason", "calls"], rows, (2,))),
    )
    return Page("Upstream", said["sentence"], body, "/upstream")


def _limits(queue: dict[str, Any]) -> Html:
    rows = (
        Row(
            [
                one["name"],
                one["of"],
                meter(one["used"] / max(1, one["now"]), f"{one['used'] / max(1, one['now']):.0%} taken"),
                number(one["used"]),
                number(one["now"]),
                number(one["waiting"]),
            ]
        )
        for one in queue["limits"]
    )
    head = ["limit", "of", "taken", "used", "of in all", "waiting"]
    return table("limits", "Rates with something taken, the gateway's own among them", head, rows, (3, 4, 5))


def _lanes(queue: dict[str, Any]) -> Html:
    rows = (
        Row(
            [
                one["team"],
                one["route"],
                number(one["waiting"]),
                one["limit"] or one["held_by"] or "–",
                "–" if one["starts_in_s"] is None else f"in {span(one['starts_in_s'])}",
            ]
        )
        for one in queue["lanes"]
    )
    return table("lanes", "Who waits, and for what", ["team", "route", "waiting", "held up by", "starts"], rows, (2,))


def _shut(queue: dict[str, Any]) -> Html:
    rows = (
        Row(
            [one["what"], one["name"] or "–", "–" if one["opens_in_s"] is None else f"in {span(one['opens_in_s'])}"],
            "warned",
        )
        for one in queue["shut"]
    )
    return table("shut", "Pauses and breakers, and when they are tried again", ["what", "name", "opens"], rows)
