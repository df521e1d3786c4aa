"""Prices with their places, and the models that were called without one."""

from typing import Any

from proxy.admin.call import Asked
from proxy.admin.page.frame import Page, Row, section, table
from proxy.admin.page.markup import Html, tag, text
from proxy.admin.page.words import amount, place
from proxy.core.instants import ago
from proxy.core.listing import listing
from proxy.core.spending import By, spending
from proxy.server.parts import Parts
from proxy.units import credit_text, instant_text

SINCE = "30d"


async def read(_: Asked, parts: Parts) -> dict[str, Any]:
    """Models in use by what they cost, and every price."""
    parts.books.store.push()
    rows = spending(await parts.books.store.totals(ago(SINCE, parts.wall())), (By.MODEL,))
    prices = parts.state.policy.prices
    models: list[dict[str, Any]] = []
    for row in rows:
        if name := row.words[0]:
            price = prices.find("models", name)
            models.append(
                {
                    "model": name,
                    "credits": credit_text(row.credits),
                    "priced": price is not None,
                    "source": "" if price is None else price.source,
                }
            )
    models.sort(key=lambda one: one["priced"])
    unpriced = sum(not one["priced"] for one in models)
    return {
        "at": instant_text(parts.wall()),
        "sentence": _sentence(len(models), unpriced, has_prices=bool(prices)),
        "flat": not prices,
        "models": models,
        "prices": [said.plain for said in listing(parts.state.policy) if said.kind == "price"],
    }


def _sentence(models: int, unpriced: int, *, has_prices: bool) -> str:
    if not has_prices:
        return "The policy has no prices: where it has no budgets either, every model has one flat price."
    if unpriced:
        return f"{unpriced} of {models} models in use have no price, so only the gateway knows what they cost."
    return f"All {models} models in use have a price."


def show(said: dict[str, Any], _: float) -> Page:
    used = (
        Row(
            [
                one["model"],
                _priced(one, flat=said["flat"]),
                amount(one["credits"]),
                place(one["source"]) if one["priced"] else "–",
            ],
            "" if one["priced"] or said["flat"] else "exhausted",
        )
        for one in said["models"]
    )
    prices = (Row([one["name"], _terms(one["words"]), place(one["source"])]) for one in said["prices"])
    body = text(
        section(
            "In use", table("models", "Models of the last 30 days", ["model", "price", "credits", "where"], used, (2,))
        ),
        section("Prices", table("prices", "Prices in credits", ["what", "price", "where"], prices)),
    )
    return Page("Models and prices", said["sentence"], body, "/models")


def _priced(one: dict[str, Any], *, flat: bool) -> Html:
    if one["priced"]:
        return text("priced")
    return text("flat price") if flat else tag("strong", "no price", class_="state exhausted")


def _terms(words: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in words.items())
