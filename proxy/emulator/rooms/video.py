"""Video: started, polled until it is ready, then downloaded here or from a CDN, by family."""

import base64
import binascii
import re
from typing import Any, Final
from urllib.parse import quote

from proxy.emulator.answers import Answer, Refused, bad_parameter, json_answer, refused
from proxy.emulator.catalog import Kind
from proxy.emulator.content import link, mp4, size_of_image
from proxy.emulator.lookup import media_row
from proxy.emulator.media import PIXELS_MAX, VIDEOS, VideoFamily, VideoModel
from proxy.emulator.messages import IMAGE_TOO_LARGE
from proxy.emulator.money import units_of
from proxy.emulator.rooms.images import FAILS, INPUT
from proxy.emulator.shapes import Field, Shape, read_shaped
from proxy.emulator.words import hex_id
from proxy.emulator.world import Call, Job, World

INPUTS_MAX: Final = 1
DURATION_DEFAULT_S: Final = 8

# The emulator fetches nothing: an http(s) image is as large as its name says, such as 7000x6000.png.
NAMED_SIZE: Final = re.compile(r"(\d{1,6})x(\d{1,6})\.\w+$")

RANGE: Final = re.compile(r"bytes=(\d+)-(\d*)")

# fmt: off
FIELDS: Final = (
    Field("model",      Shape.STRING, required=True),
    Field("prompt",     Shape.STRING, required=True),
    Field("parameters", Shape.OBJECT),
    Field("input_urls", Shape.ARRAY, each=Shape.STRING),
)
# fmt: on


def start(world: World, call: Call) -> Answer:
    body = read_shaped(call.body, FIELDS)
    model = media_row(body["model"], VIDEOS, Kind.VIDEO)
    _check_inputs(body.get("input_urls") or [], model)
    world.reserve(call)
    key = hex_id("", world.options.seed, call.body, call.turn)
    ident = f"models/{model.name}/operations/{key}" if model.family is VideoFamily.FIRST else f"op:{key}"
    charge = units_of(model.credits)
    result = {"video_uri": _place(world, model, ident), "duration_seconds": _duration(body.get("parameters") or {})}
    world.start_job(call, ident, Job(model.name, 0, FAILS in body["prompt"], charge, result))
    return json_answer({"operation_id": ident, "status": "processing", "video_model_id": model.number}, charge=charge)


def poll(world: World, call: Call) -> Answer:
    ident = call.parts["operation_id"]
    job = world.poll(call, ident)
    shown = job.result if job.status == "completed" else {"video_uri": None, "duration_seconds": None}
    return json_answer({"operation_id": ident, "status": job.status, **shown})


def download(world: World, call: Call) -> Answer:
    """The bytes of a finished video, or the part of them that a `Range` header names."""
    ident = call.parts["operation_id"]
    job = world.job(call, ident)
    if job.status != "completed":
        raise Refused(json_answer({"detail": f"Video '{ident}' is not ready"}, status=404))
    data = mp4(ident, float(job.result["duration_seconds"]))
    kind, ranges = "video/mp4", (("Accept-Ranges", "bytes"),)
    asked = RANGE.fullmatch(call.headers.get("Range", ""))
    if asked is None:
        return Answer(200, (data,), kind, ranges)
    first, last = int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)
    if first > last:
        return Answer(416, (), kind, (*ranges, ("Content-Range", f"bytes */{len(data)}")))
    part = (*ranges, ("Content-Range", f"bytes {first}-{last}/{len(data)}"))
    return Answer(206, (data[first : last + 1],), kind, part)


def _place(world: World, model: VideoModel, ident: str) -> str:
    if model.family is VideoFamily.FIRST:
        return f"/v1/gateway/video/generation/{quote(ident)}/download/"
    return link(world.origin, "mp4", ident)


def _duration(parameters: dict[str, Any]) -> int | float | None:
    """The length asked for, under whichever name the model knows it."""
    for name in ("duration_seconds", "duration", "seconds"):
        value = parameters.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return DURATION_DEFAULT_S


def _check_inputs(inputs: list[str], model: VideoModel) -> None:
    if len(inputs) > INPUTS_MAX:
        raise bad_parameter(f"input_urls takes at most {INPUTS_MAX} item")
    for number, item in enumerate(inputs):
        if not INPUT.fullmatch(item):
            raise bad_parameter(f"input_urls[{number}] must be an http(s) URL or a data:image/...;base64 URL")
        size = _size(item)
        if model.family is VideoFamily.ARK and size and size[0] * size[1] > PIXELS_MAX:
            w, h = size
            raise refused(IMAGE_TOO_LARGE, n=number, w=w, h=h, pixels=w * h, limit=PIXELS_MAX)


def _size(item: str) -> tuple[int, int] | None:
    if named := NAMED_SIZE.search(item):
        return int(named[1]), int(named[2])
    try:
        return size_of_image(base64.b64decode(item.partition("base64,")[2]))
    except binascii.Error:
        return None
