"""Image generation and editing: at once from the synchronous families, by polling from the others."""

import base64
import re
from typing import Any, Final

from proxy.emulator.answers import Answer, Refused, bad_parameter, json_answer
from proxy.emulator.assumptions import CREATED
from proxy.emulator.catalog import Kind
from proxy.emulator.content import link, png
from proxy.emulator.lookup import media_row
from proxy.emulator.media import IMAGES, SEARCH_IMAGES_MAX, ImageFamily, ImageModel
from proxy.emulator.mind import canonical
from proxy.emulator.money import units_of
from proxy.emulator.shapes import Field, Shape, read_shaped
from proxy.emulator.words import hex_id
from proxy.emulator.world import Call, Job, World

IMAGES_MAX: Final = 10
"""Images per request of the other families."""

SYNCHRONOUS: Final = (ImageFamily.SEARCH, ImageFamily.LAB)

# A raw base64 string without the data URL around it is none of these.
INPUT: Final = re.compile(r"https?://\S+|data:image/[\w.+-]+;base64,[A-Za-z0-9+/=\s]+")

FAILS: Final = "[[job:failed]]"
"""An operation whose prompt says so ends as `failed`."""

# fmt: off
FIELDS: Final = (
    Field("model",            Shape.STRING, required=True),
    Field("prompt",           Shape.STRING, required=True),
    Field("number_of_images", Shape.INTEGER),
    Field("aspect_ratio",     Shape.STRING),
    Field("quality",          Shape.STRING),
    Field("image_size",       Shape.STRING),
    Field("input_images",     Shape.ARRAY, each=Shape.STRING),
)
# fmt: on


def generate(world: World, call: Call) -> Answer:
    body = read_shaped(call.body, FIELDS)
    model = media_row(body["model"], IMAGES, Kind.IMAGE, _unknown(body["model"]))
    count = 1 if body.get("number_of_images") is None else body["number_of_images"]
    most = SEARCH_IMAGES_MAX if model.family is ImageFamily.SEARCH else IMAGES_MAX
    if not 1 <= count <= most:
        raise bad_parameter(f"number_of_images must be between 1 and {most}")
    _check_inputs(body.get("input_images") or [], model)
    world.reserve(call)
    charge = units_of(model.credits * count)
    keys = [hex_id("", world.options.seed, canonical(body).decode(), number) for number in range(count)]
    if model.family in SYNCHRONOUS:
        return json_answer({"created": CREATED, "data": _made(world, model, keys)}, charge=charge)
    ident = hex_id("img_", world.options.seed, call.body, call.turn)
    job = Job(model.name, 0, FAILS in body["prompt"], charge, {"data": _made(world, model, keys)})
    world.start_job(call, ident, job)
    return json_answer({"operation_id": ident, "status": "processing"}, charge=charge)


def poll(world: World, call: Call) -> Answer:
    ident = call.parts["operation_id"]
    job = world.poll(call, ident)
    more = job.result if job.status == "completed" else {}
    return json_answer({"operation_id": ident, "status": job.status, **more})


def _made(world: World, model: ImageModel, keys: list[str]) -> list[dict[str, Any]]:
    if model.family is ImageFamily.SEARCH:
        return [{"b64_json": base64.b64encode(png(key)).decode()} for key in keys]
    return [{"url": link(world.origin, "png", key)} for key in keys]


def _unknown(name: str) -> Refused:
    """404 with the live list of what there is."""
    return Refused(json_answer({"detail": f"Model '{name}' not found. Available models: {list(IMAGES)}"}, status=404))


def _check_inputs(inputs: list[str], model: ImageModel) -> None:
    if len(inputs) > model.inputs_max:
        raise bad_parameter(f"Model '{model.name}' takes at most {model.inputs_max} input images, not {len(inputs)}")
    for number, item in enumerate(inputs):
        if not INPUT.fullmatch(item):
            raise bad_parameter(f"input_images[{number}] must be an http(s) URL or a data:image/...;base64 URL")
