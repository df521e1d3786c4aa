"""Finding the model a request names, or the documented refusal for the endpoint that asked."""

from collections.abc import Mapping
from typing import TypeVar

from proxy.emulator.answers import Refused, refused
from proxy.emulator.assumptions import VENDOR_A, VENDOR_B
from proxy.emulator.catalog import MODELS, Kind, Model, Offer, Trait
from proxy.emulator.messages import (
    MODEL_NOT_FOUND,
    NOT_ENABLED,
    NOT_NATIVE,
    NOT_OFFERED,
    NOT_RESPONSES,
    RESPONSES_ONLY,
    Message,
)

Row = TypeVar("Row")


def text_model(name: str) -> Model:
    """A text model: an unknown, disabled or media model is 404, an app-only one 403."""
    model = MODELS.get(name)
    if model is None or model.kind is not Kind.LLM or model.offer is Offer.DISABLED:
        raise refused(MODEL_NOT_FOUND, model=name)
    if model.offer is Offer.APP_ONLY:
        raise refused(NOT_OFFERED, model=name)
    return model


def chat_model(name: str) -> Model:
    model = text_model(name)
    if Trait.RESPONSES_ONLY in model.traits:
        raise refused(RESPONSES_ONLY, model=name)
    return model


def native_model(name: str) -> Model:
    return _of_vendor(name, Trait.NATIVE, NOT_NATIVE, VENDOR_A)


def responses_model(name: str) -> Model:
    return _of_vendor(name, Trait.RESPONSES, NOT_RESPONSES, VENDOR_B)


def media_row(name: str, rows: Mapping[str, Row], kind: Kind, unknown: Refused | None = None) -> Row:
    """The row of an audio, image or video model: a disabled or app-only one is 403, any other name is 404."""
    if name in rows:
        return rows[name]
    model = MODELS.get(name)
    if model is not None and model.kind is kind and model.offer is Offer.DISABLED:
        raise refused(NOT_ENABLED, model=name)
    if model is not None and model.kind is kind and model.offer is Offer.APP_ONLY:
        raise refused(NOT_OFFERED, model=name)
    raise unknown or refused(MODEL_NOT_FOUND, model=name)


def _of_vendor(name: str, trait: Trait, message: Message, vendor: str) -> Model:
    """A known model of another vendor is 400; an unknown name is 404 as everywhere."""
    known = MODELS.get(name)
    if known is not None and trait not in known.traits:
        raise refused(message, model=name, vendor=vendor)
    return text_model(name)
