"""What an answer teaches about the text of later calls, where the policy asks for that."""

from typing import Final

from proxy.core.pricing import Estimate, Unit, paid_input
from proxy.server.call import Call
from proxy.server.parts import Parts

_LEARNED: Final = Estimate.LEARNED
"""Bound once: looking a member up in its enum takes as long as a call, and every request does."""


def learn(call: Call, parts: Parts) -> None:
    """Compare the text that was sent with the tokens the gateway reported; what changed is kept, and not waited for.

    A call with parts that are no text, or chained to another answer, does not say how many of its tokens were text.
    """
    what = call.asked
    if call.policy.estimate is not _LEARNED or what is None or what.unit is not Unit.TOKENS or call.joined:
        return
    meter = call.source.exchange.meter if call.source is not None else None
    if meter is None or not meter.usage.settled or what.parts or what.parent_tokens or call.model is None:
        return
    tokens = paid_input(meter.usage, meter.family)
    if tokens is None or call.route is None:
        return
    learned = parts.densities.see(call.route.name, call.model, what.text_bytes, tokens, parts.wall())
    if learned is not None:
        parts.books.note([learned])
