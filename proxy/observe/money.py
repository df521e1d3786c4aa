"""What holds came to, in metrics: one place for calls and for work that went on after its call."""

from proxy.core.charges import Charge
from proxy.observe.metrics import Metrics
from proxy.units import CREDIT, Credits


def count_ending(
    metrics: Metrics, team: str, model: str, held: Credits, charge: Charge | None, *, expired: bool = False
) -> None:
    """Count how a hold ended.

    model: as labels have it.      charge: None where nothing was settled.
    expired: nobody heard how its work ended.
    """
    values = metrics.values
    if charge is None:
        values["reservations_total"]["released",].value += 1
        return
    over = charge.credits - held
    values["reservations_total"]["expired" if expired else "overrun" if over > 0 else "settled",].value += 1
    values["spent_credits_total"][team, model].value += charge.credits / CREDIT
    if over:
        values["settlement_delta_credits_total"]["over" if over > 0 else "under",].value += abs(over) / CREDIT
