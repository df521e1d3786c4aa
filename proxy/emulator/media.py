"""Image, video, speech and music models: families, prices and bounds, as the tables of the documentation have them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class ImageFamily(Enum):
    """Who makes the images, and so how they come."""

    SEARCH = "synchronous, base64 inline"
    LAB = "synchronous, temporary URLs or base64"
    AGGREGATOR_A = "asynchronous, URLs, from one aggregator"
    AGGREGATOR_B = "asynchronous, URLs, from another"


class VideoFamily(Enum):
    """Who makes the video, and so where it is fetched."""

    FIRST = "fetched at the download endpoint"
    ARK = "fetched at a CDN; reference images are bounded in pixels"
    OTHER = "fetched at a CDN"


@dataclass(frozen=True, slots=True)
class ImageModel:
    """`credits` per image; `inputs_max` 0 means generation only."""

    name: str
    family: ImageFamily
    credits: int
    inputs_max: int


@dataclass(frozen=True, slots=True)
class VideoModel:
    """`credits` per video; `number` is the internal id answered at creation."""

    name: str
    family: VideoFamily
    credits: int
    number: int


@dataclass(frozen=True, slots=True)
class SpeechModel:
    """`token_price` in units of 1e-8 credit per input token: 0.001 credits per 10,000 tokens are 10."""

    name: str
    token_price: int


@dataclass(frozen=True, slots=True)
class MusicModel:
    """`credits` per piece, which the documentation does not show; only one family tells the structure of its music."""

    name: str
    credits: int
    structured: bool = False


SEARCH_IMAGES_MAX: Final = 4
"""Images per request of the synchronous search-company family."""

PIXELS_MAX: Final = 36_000_000
"""Width times height of a reference image for the models of `VideoFamily.ARK`."""

SPEECH_CHARS_MAX: Final = 4000

_SEARCH, _LAB, _A, _B = ImageFamily.SEARCH, ImageFamily.LAB, ImageFamily.AGGREGATOR_A, ImageFamily.AGGREGATOR_B
_FIRST, _ARK, _OTHER = VideoFamily.FIRST, VideoFamily.ARK, VideoFamily.OTHER

# fmt: off
IMAGES: Final[Mapping[str, ImageModel]] = {row.name: row for row in (
    ImageModel("image-lab-large",       _LAB,    53,  10),
    ImageModel("image-lab-clear",       _LAB,    39,  10),
    ImageModel("image-lab-medium",      _LAB,    42,  10),
    ImageModel("image-lab-small",       _LAB,    8,   10),
    ImageModel("image-search-standard", _SEARCH, 69,  10),
    ImageModel("image-search-pro",      _SEARCH, 140, 14),
    ImageModel("image-search-flash",    _SEARCH, 34,  14),
    ImageModel("image-search-basic",    _SEARCH, 39,  10),
    ImageModel("image-a-premium-flux",  _A,      30,  8),
    ImageModel("image-a-flux-1.1",      _A,      40,  1),
    ImageModel("image-a-gen-5.0",       _A,      30,  10),
    ImageModel("image-a-gen-5.1",       _A,      90,  10),
    ImageModel("image-a-video-lab",     _A,      80,  3),
    ImageModel("image-a-sdxl",          _A,      5,   1),
    ImageModel("image-b-plain",         _B,      35,  1),
    ImageModel("image-b-grok-type",     _B,      40,  1),
    ImageModel("image-b-ideogram-type", _B,      60,  1),
    ImageModel("image-b-vector",        _B,      40,  0),
    ImageModel("image-b-small",         _B,      20,  1),
)}

VIDEOS: Final[Mapping[str, VideoModel]] = {row.name: row for row in (
    VideoModel("video-1600",  _FIRST, 1600, 1),
    VideoModel("video-1200",  _OTHER, 1200, 2),
    VideoModel("video-1165",  _OTHER, 1165, 3),
    VideoModel("video-770",   _OTHER, 770,  4),
    VideoModel("video-756",   _OTHER, 756,  5),
    VideoModel("video-720",   _OTHER, 720,  6),
    VideoModel("video-605",   _OTHER, 605,  7),
    VideoModel("video-600",   _FIRST, 600,  8),
    VideoModel("video-540",   _OTHER, 540,  9),
    VideoModel("video-500",   _OTHER, 500,  10),
    VideoModel("video-420-a", _OTHER, 420,  11),
    VideoModel("video-420-b", _OTHER, 420,  12),
    VideoModel("video-400",   _OTHER, 400,  13),
    VideoModel("video-350",   _OTHER, 350,  14),
    VideoModel("video-300-a", _OTHER, 300,  15),
    VideoModel("video-300-b", _OTHER, 300,  16),
    VideoModel("video-270",   _OTHER, 270,  17),
    VideoModel("video-256",   _ARK,   256,  18),
    VideoModel("video-200",   _FIRST, 200,  19),
    VideoModel("video-130",   _ARK,   130,  20),
    VideoModel("video-97",    _ARK,   97,   21),
)}

SPEECH: Final[Mapping[str, SpeechModel]] = {row.name: row for row in (
    SpeechModel("speech-standard", 10),
    SpeechModel("speech-premium",  20),
)}

MUSIC: Final[Mapping[str, MusicModel]] = {row.name: row for row in (
    MusicModel("music-effects", 10),
    MusicModel("music-songs",   25, structured=True),
)}
# fmt: on

# fmt: off
VOICES: Final = frozenset((
    "Aoede", "Achernar", "Autonoe", "Callirrhoe", "Despina", "Erinome", "Gacrux", "Kore", "Laomedeia", "Leda",
    "Pulcherrima", "Sulafat", "Vindemiatrix", "Zephyr",
    "Achird", "Algenib", "Algieba", "Alnilam", "Charon", "Enceladus", "Fenrir", "Iapetus", "Orus", "Puck",
    "Rasalgethi", "Sadachbia", "Sadaltager", "Schedar", "Umbriel", "Zubenelgenubi",
))
# fmt: on
VOICE_DEFAULT: Final = "Aoede"
