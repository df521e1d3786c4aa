"""The models of the emulated tenant: kinds, vendors, traits and prices, as one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proxy.emulator.media import IMAGES, MUSIC, SPEECH, VIDEOS


class Kind(Enum):
    """Kinds of models in the order lists show them: `llm` comes first."""

    LLM = "llm"
    AUDIO = "audio"
    IMAGE = "image"
    VIDEO = "video"


class Offer(Enum):
    """Whether the tenant may use a model."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    APP_ONLY = "app only"


class Trait(Enum):
    """What sets a text model apart from the plain ones."""

    NATIVE = "of vendor A: served on the native endpoints too"
    RESPONSES = "of vendor B: served on the Responses-style endpoints too"
    RESPONSES_ONLY = "refused on chat completions"
    REASONING = "spends output tokens on reasoning first"
    TEMPERATURE_ONE = "accepts no temperature but 1"
    THINKING_BUDGET = "takes thinking_budget"
    THINKING_LEVEL = "takes thinking_level minimal, low, medium, high"
    THINKING_LEVEL_SHORT = "takes thinking_level low, high"
    NO_EFFORT_WITH_TOOLS = "rejects reasoning_effort together with tools, so the gateway drops it"
    EFFORT_MAX = "takes effort max"


@dataclass(frozen=True, slots=True)
class Model:
    """One model; prices in units of 1e-8 credit per token of text. What media cost is in `media.py`."""

    name: str
    kind: Kind
    owner: str
    input_price: int
    output_price: int
    traits: frozenset[Trait] = frozenset()
    offer: Offer = Offer.ENABLED


_A: Final = frozenset({Trait.NATIVE})
_B: Final = frozenset({Trait.RESPONSES})
_B_REASONS: Final = _B | {Trait.REASONING, Trait.TEMPERATURE_ONE}
_OFF, _APP = Offer.DISABLED, Offer.APP_ONLY
_LLM, _AUDIO, _IMAGE, _VIDEO = Kind.LLM, Kind.AUDIO, Kind.IMAGE, Kind.VIDEO

# fmt: off
MODELS: Final[Mapping[str, Model]] = {model.name: model for model in (
    Model("gpt-4o",              _LLM,   "vendor-b", 250,  1000, _B),
    Model("gpt-4o-mini",         _LLM,   "vendor-b", 15,   60,   _B),
    Model("gpt-x",               _LLM,   "vendor-b", 125,  1000, _B_REASONS),
    Model("gpt-x-mini",          _LLM,   "vendor-b", 25,   200,  _B_REASONS | {Trait.NO_EFFORT_WITH_TOOLS}),
    Model("gpt-x-codex",         _LLM,   "vendor-b", 125,  1000, _B | {Trait.REASONING, Trait.RESPONSES_ONLY}),
    Model("gpt-retired",         _LLM,   "vendor-b", 3000, 6000, _B, _OFF),
    Model("gpt-free",            _LLM,   "vendor-b", 0,    0,    _B, _APP),
    Model("claude-haiku-x",      _LLM,   "vendor-a", 100,  500,  _A),
    Model("claude-sonnet-x",     _LLM,   "vendor-a", 300,  1500, _A),
    Model("claude-opus-x",       _LLM,   "vendor-a", 500,  2500, _A | {Trait.EFFORT_MAX}),
    Model("claude-retired",      _LLM,   "vendor-a", 800,  2400, _A, _OFF),
    Model("gem-2-flash",         _LLM,   "vendor-c", 30,   250,  frozenset({Trait.THINKING_BUDGET})),
    Model("gem-3-flash",         _LLM,   "vendor-c", 50,   300,  frozenset({Trait.THINKING_LEVEL})),
    Model("gem-3-pro",           _LLM,   "vendor-c", 200,  1200, frozenset({Trait.THINKING_LEVEL_SHORT})),
    Model("open/llama-large",    _LLM,   "vendor-d", 40,   120),
    *(Model(name, _AUDIO, "vendor-c", 0, 0) for name in (*SPEECH, *MUSIC)),
    *(Model(name, _IMAGE, "vendor-e", 0, 0) for name in IMAGES),
    *(Model(name, _VIDEO, "vendor-f", 0, 0) for name in VIDEOS),
    Model("speech-retired",      _AUDIO, "vendor-c", 0,    0,    offer=_OFF),
    Model("image-retired",       _IMAGE, "vendor-e", 0,    0,    offer=_OFF),
    Model("video-retired",       _VIDEO, "vendor-f", 0,    0,    offer=_OFF),
    Model("speech-free",         _AUDIO, "vendor-c", 0,    0,    offer=_APP),
    Model("image-free",          _IMAGE, "vendor-e", 0,    0,    offer=_APP),
    Model("video-free",          _VIDEO, "vendor-f", 0,    0,    offer=_APP),
)}
# fmt: on


def accessible(kinds: frozenset[Kind] = frozenset(Kind)) -> list[Model]:
    """Models the tenant can use, `llm` first, otherwise in the order of the table."""
    order = list(Kind)
    found = [model for model in MODELS.values() if model.offer is Offer.ENABLED and model.kind in kinds]
    return sorted(found, key=lambda model: order.index(model.kind))
