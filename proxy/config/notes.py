"""What of a policy is sound and may yet not be what was meant: told by `check`, and no problem. Pure."""

from collections.abc import Iterator

from proxy.core.chatbot import PREFIX as CHATBOT
from proxy.core.policy import Policy, Team
from proxy.core.prices import Rule


def notes_of(policy: Policy) -> Iterator[str]:
    """One sentence each, with its place first."""
    for alias, model in policy.aliases.items():
        if model in policy.aliases:
            yield (
                f"{policy.sources[f'alias {alias}']}: aliases.{alias}: {model} is an alias, too; aliases are applied "
                f"once, so the gateway is asked for {model} itself"
            )
    for team in policy.teams.values():
        yield from _aliases_of(team, policy)
    for rule in policy.prices.rules:
        if _is_for_music(rule):
            yield (
                f"{rule.price.source}: prices: per_call of {rule.pattern} is what music costs; no other call of a "
                "model is priced by it"
            )
        if rule.kind == "models" and (meant := _meant(policy, rule.pattern)) is not None:
            yield (
                f"{rule.price.source}: prices: {rule.pattern} is an alias, and calls are priced as what it stands for, "
                f"{meant}"
            )


def _is_for_music(rule: Rule) -> bool:
    """Whether a price by the call stands alone, or at a single model, which makes music or does something else."""
    price = rule.price
    if rule.kind != "models" or not price.per_call:
        return False
    others = price.input_per_million or price.output_per_million or price.per_image or price.per_video
    exact, _ = rule.specificity
    return exact or not others


def _aliases_of(team: Team, policy: Policy) -> Iterator[str]:
    """What a team's lists of models say of names that no call is judged under."""
    place = f"{policy.sources.get(f'team {team.name}', '')}: teams.{team.name}"
    for name in team.models or ():
        model = _meant(policy, name)
        if model is not None and not model.startswith(CHATBOT) and not team.may_use_model(model):
            yield f"{place}.models: {name} is an alias, and the team may not use what it stands for, {model}"
    for name in team.deny_models:
        model = _meant(policy, name)
        if model is not None and team.may_use_model(model):
            yield f"{place}.deny_models: {name} is an alias, and the team may use what it stands for, {model}"


def _meant(policy: Policy, name: str) -> str | None:
    """What a name stands for that no call is judged under, as it has become a model before; None for any other."""
    return None if name in policy.aliases.values() else policy.aliases.get(name)
