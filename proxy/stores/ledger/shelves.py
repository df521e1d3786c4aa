"""What rides with the entries, kept in memory: what a home without a file reads back."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from proxy.core.operations import Operation
from proxy.core.riders import (
    Begin,
    Finish,
    Forget,
    IssueKey,
    Keep,
    KeptKey,
    KeptOutcome,
    KeptOwner,
    KeptTurn,
    Learned,
    Own,
    Promise,
    Release,
    RevokeKey,
    Rider,
    Shelf,
    Turn,
    TurnWritten,
    Used,
)

_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


@dataclass(slots=True)
class Shelves:
    """Rows by their names, oldest first."""

    owners: dict[str, KeptOwner] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], KeptOutcome] = field(default_factory=dict)
    keys: dict[str, KeptKey] = field(default_factory=dict)
    turns: dict[str, KeptTurn] = field(default_factory=dict)
    learned: dict[tuple[str, str], Learned] = field(default_factory=dict)

    def take(self, step: Rider) -> None:
        """Take a row that was accepted."""
        match step:
            case Own():
                self.owners.setdefault(step.id, KeptOwner(step))
            case Used() if (owner := self.owners.get(step.id)) is not None:
                self.owners[step.id] = replace(owner, input_tokens=step.input_tokens, output_tokens=step.output_tokens)
            case Begin(operation):
                self.operations[operation.id] = operation
            case Finish():
                self.operations.pop(step.id, None)
            case Promise():
                self.outcomes.pop((step.team, step.key), None)
                self.outcomes[step.team, step.key] = KeptOutcome(step)
            case Keep() if (outcome := self.outcomes.get((step.team, step.key))) is not None:
                self.outcomes[step.team, step.key] = replace(outcome, keep=step)
            case Release():
                self.outcomes.pop((step.team, step.key), None)
            case IssueKey():
                self.keys.setdefault(step.id, KeptKey(step))
            case RevokeKey() if (key := self.keys.get(step.id)) is not None:
                was_s = key.revoked_s
                self.keys[step.id] = replace(
                    key, revoked_s=min(step.revoked_s, step.revoked_s if was_s is None else was_s)
                )
            case Turn():
                self.turns.setdefault(step.id, KeptTurn(step))
            case TurnWritten() if (turn := self.turns.get(step.id)) is not None:
                self.turns[step.id] = replace(turn, written=step)
            case Learned():
                self.learned[step.route, step.model] = step
            case Forget():
                self._forget(step)

    def turns_since(self, since_s: float) -> list[KeptTurn]:
        """Turns taken or written since an instant, and those never written."""
        return [kept for kept in self.turns.values() if kept.written is None or _last_s(kept) >= since_s]

    def _forget(self, step: Forget) -> None:
        match step.shelf:
            case Shelf.OWNERS:
                _drop(self.owners, lambda kept: kept.own.at_s < step.at_s)
            case Shelf.OUTCOMES:
                _drop(self.outcomes, lambda kept: kept.promise.at_s < step.at_s)
            case Shelf.TURNS:
                _drop(self.turns, lambda kept: _last_s(kept) < step.at_s)
            case Shelf.OPERATIONS:
                pass  # those that ended are gone already


def _last_s(kept: KeptTurn) -> float:
    return kept.turn.at_s if kept.written is None else max(kept.turn.at_s, kept.written.at_s)


def _drop(kept: dict[_Key, _Kept], old: Callable[[_Kept], bool]) -> None:
    for name in [name for name, one in kept.items() if old(one)]:
        del kept[name]
