"""Budgets, rates and prices as the core knows them, made from what a policy file says; and the gateway's own rates."""

from datetime import UTC
from pathlib import Path
from typing import Final

from proxy.config.policymodel import BudgetModel, CacheModel, FileModel, PriceModel, RateModel
from proxy.config.yamlfile import read_yaml
from proxy.core.deterministic import CacheRule
from proxy.core.limits import Budget, Counts, Match, Rate, RateMatch
from proxy.core.prices import Price, Rule
from proxy.core.windows import Calendar, Sliding

GATEWAY: Final = Path(__file__).parents[1] / "gateway.yaml"
"""The gateway's own limits, part of the package."""


def gateway_rates() -> tuple[Rate, ...]:
    """The limits that the gateway's document states."""
    file = read_yaml(GATEWAY, name=f"{GATEWAY.name} (built in)")
    said = FileModel.model_validate(file.tree).rates
    return tuple(rate(one, file.place(["rates", index])) for index, one in enumerate(said))


def budget(said: BudgetModel, source: str) -> Budget:
    window: Calendar | Sliding
    if said.per is not None:
        window = Calendar(said.per, said.timezone or UTC)
    else:
        assert said.within is not None
        window = Sliding(said.within)
    return Budget(
        name=said.name,
        amount=said.credits,
        window=window,
        match=Match(**said.match.model_dump()),
        each=said.each,
        amounts=dict(said.amounts),
        instead_of=said.instead_of,
        excess=said.excess,
        warn_at=said.warn_at,
        shadow=said.shadow,
        source=source,
    )


def rate(said: RateModel, source: str) -> Rate:
    counted = {Counts.REQUESTS: said.requests, Counts.TOKENS: said.tokens, Counts.IN_FLIGHT: said.in_flight}
    counts, amount = next((counts, amount) for counts, amount in counted.items() if amount is not None)
    match = said.match.model_dump()
    more = {word: match.pop(word) for word in ("method", "reserves", "spends")}
    return Rate(
        name=said.name,
        counts=counts,
        amount=amount,
        window_s=said.within or 0.0,
        match=RateMatch(Match(**match), **more),
        each=said.each,
        amounts=dict(said.amounts),
        instead_of=said.instead_of,
        excess=said.excess,
        shadow=said.shadow,
        source=source,
    )


def cache_rule(said: CacheModel, source: str) -> CacheRule:
    return CacheRule(
        match=Match(**said.match.model_dump(exclude={"deterministic", "method"})),
        method=said.match.method,
        deterministic=said.match.deterministic,
        ttl_s=said.ttl,
        stale_if_error_s=said.stale_if_error,
        source=source,
    )


def rule(said: PriceModel, source: str) -> Rule:
    kind = next(kind for kind in ("models", "chatbots", "suites") if getattr(said, kind) is not None)
    given = said.model_dump(exclude_none=True, exclude={"models", "chatbots", "suites"})
    return Rule(kind, getattr(said, kind), Price(**given, source=source))
