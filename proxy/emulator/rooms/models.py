"""The model lists: `GET models/` with its filter, and `GET models/{model}/`."""

from typing import Any

from proxy.emulator.answers import Answer, json_answer, refused, unprocessable
from proxy.emulator.assumptions import CREATED, CREATED_TEXT, LISTS_WRAPPED
from proxy.emulator.catalog import Kind, Model, Trait, accessible
from proxy.emulator.messages import MODEL_NOT_FOUND
from proxy.emulator.shapes import problem
from proxy.emulator.world import Call, World


def listed(_world: World, call: Call) -> Answer:
    entries = [_entry(model) for model in accessible(_kinds(call.query.get("type")))]
    return json_answer({"object": "list", "data": entries} if LISTS_WRAPPED else entries)


def single(_world: World, call: Call) -> Answer:
    name = call.parts["model"]
    for model in accessible():
        if model.name == name:
            return json_answer(_entry(model))
    raise refused(MODEL_NOT_FOUND, model=name)


def native_listed(_world: World, _call: Call) -> Answer:
    """The list in the form of the native vendor; everything fits one page, so `limit` changes nothing."""
    entries = [
        {
            "type": "model",
            "id": model.name,
            "display_name": model.name.replace("-", " ").title(),
            "created_at": CREATED_TEXT,
        }
        for model in accessible()
        if Trait.NATIVE in model.traits
    ]
    first, last = (entries[0]["id"], entries[-1]["id"]) if entries else (None, None)
    return json_answer({"data": entries, "has_more": False, "first_id": first, "last_id": last})


def _entry(model: Model) -> dict[str, Any]:
    return {"id": model.name, "object": "model", "created": CREATED, "owned_by": model.owner}


def _kinds(wanted: str | None) -> frozenset[Kind]:
    """The kinds of a comma-separated set; an unknown word is a 422 on the query."""
    if wanted is None:
        return frozenset(Kind)
    words = [word.strip() for word in wanted.split(",")]
    known = {kind.value: kind for kind in Kind}
    for word in words:
        if word not in known:
            expected = ", ".join(f"'{name}'" for name in known)
            raise unprocessable([problem("enum", ("query", "type"), f"Input should be one of {expected}", wanted)])
    return frozenset(known[word] for word in words)
