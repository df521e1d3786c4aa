"""The parts of a request that are no text: which there are, and how much of the body is their data.

Each is priced by itself and its base64 is no text. Only where a vendor takes parts are they looked for: the same words
in a tool's schema, its arguments or plain text are read by the model, and are priced as text.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple


class Kind(Enum):
    """What a part that is no text holds."""

    IMAGE = "image"
    FILE = "file"
    AUDIO = "audio"


class Part(NamedTuple):
    """One such part; `data_bytes` of base64 are no text."""

    kind: Kind
    data_bytes: int
    is_reference: bool


# fmt: off
_PARTS: Final[Mapping[str, tuple[Kind, tuple[str, ...]]]] = {
    # type of the part         kind         where its data, URL or file id may stand; "." is the part itself
    "image_url":              (Kind.IMAGE, ("image_url",)),
    "input_image":            (Kind.IMAGE, (".",)),
    "image":                  (Kind.IMAGE, ("source",)),
    "image_generation_call":  (Kind.IMAGE, (".",)),
    "computer_screenshot":    (Kind.IMAGE, (".",)),
    "video_url":              (Kind.FILE,  ("video_url",)),
    "document":               (Kind.FILE,  ("source",)),
    "file":                   (Kind.FILE,  ("file", "source")),
    "input_file":             (Kind.FILE,  (".",)),
    "container_upload":       (Kind.FILE,  (".",)),
    "input_audio":            (Kind.AUDIO, ("input_audio", ".")),
    "audio":                  (Kind.AUDIO, ("source", ".")),
}
_BASE64: Final = ("data", "file_data", "result")
_LINKS:  Final = ("url", "image_url", "file_url")
# fmt: on

_CARRIERS: Final = ("content", "output")
"""Members through which parts are reached. A tool's schema or arguments may look like a part and are text still."""


_NESTS: Final = (list, dict)
"""What can hold a part; most contents are plain text, and a call for each would cost more than the look."""


def parts_of(tree: Mapping[str, Any], *, typed: bool = True) -> list[Part]:
    """All parts that are no text, of a decoded request body. typed: whether anything in it has a member `type`."""
    found: list[Part] = []
    for name in ("messages", "input", "system") if typed else ():
        if type(value := tree.get(name)) in _NESTS:
            _gather(value, found)
    for name in ("input_images", "input_urls"):
        if type(links := tree.get(name)) is list:
            found += [Part(Kind.IMAGE, _data_url_bytes(link), not _data_url_bytes(link)) for link in links]
    return found


def _gather(value: Any, found: list[Part]) -> None:
    if type(value) is list:
        for item in value:
            if type(item) in _NESTS:
                _gather(item, found)
        return
    kind = value.get("type")
    if type(kind) is str and kind in _PARTS:
        found.append(_part(value, *_PARTS[kind]))
    for name in _CARRIERS:
        if type(carried := value.get(name)) in _NESTS:
            _gather(carried, found)
    if type(source := value.get("source")) is dict and type(content := source.get("content")) in _NESTS:
        _gather(content, found)


def _part(value: Mapping[str, Any], kind: Kind, places: tuple[str, ...]) -> Part:
    data_bytes, is_reference = 0, False
    for place in places:
        holder = value if place == "." else value.get(place)
        if isinstance(holder, str):
            holder = {"url": holder}
        if not isinstance(holder, dict):
            continue
        # A document's source may be plain text, which is text.
        if holder.get("type") != "text":
            data_bytes += sum(len(holder[name]) for name in _BASE64 if isinstance(holder.get(name), str))
        for name in _LINKS:
            if isinstance(link := holder.get(name), str):
                data_bytes += _data_url_bytes(link)
                is_reference = is_reference or not _data_url_bytes(link)
        is_reference = is_reference or holder.get("file_id") is not None
    return Part(kind, data_bytes, is_reference)


def _data_url_bytes(link: object) -> int:
    return len(link) if isinstance(link, str) and link.startswith("data:") else 0
