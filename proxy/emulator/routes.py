"""Every path of the gateway, as a table: method, path after the prefix, the room that answers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from proxy.emulator.answers import Answer
from proxy.emulator.limits import CHATBOT, Limit
from proxy.emulator.messages import SUITE_POST_ONLY, WRONG_METHOD, Message
from proxy.emulator.rooms import audio, balance, chat, chatbots, images, models, native, responses, suites, video
from proxy.emulator.world import Call, World

PREFIX: Final = "/v1/gateway/"
SEGMENT: Final = "{segment}"

Room = Callable[[World, Call], Answer]


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint.

    path:    after the prefix; `{name}` is one segment, `{name:path}` may hold slashes.
    either:  True where the documentation accepts the path without its last slash too.
    limits:  limits that count each request besides the general one.
    bearer:  True where only the Authorization header is read.
    """

    method: str
    path: str
    room: Room
    either: bool = False
    limits: tuple[Limit, ...] = ()
    bearer: bool = False
    wrong_method: Message = WRONG_METHOD


# fmt: off
ROUTES: Final = (
    Route("GET",  "models/",                                            models.listed),
    Route("GET",  "models/{model}/",                                    models.single),
    Route("POST", "chat/completions/",                                  chat.complete),
    Route("POST", "chatbots/{chatbot_id}/chat/completions/",            chatbots.complete, limits=(CHATBOT,)),
    Route("GET",  "{segment}/v1/models/",                               models.native_listed, either=True),
    Route("POST", "{segment}/v1/messages/",                             native.message),
    Route("POST", "{segment}/v1/messages/count_tokens/",                native.count_tokens),
    Route("POST", "responses/",                                         responses.create),
    Route("GET",  "responses/{response_id}/",                           responses.poll),
    Route("POST", "responses/{response_id}/cancel/",                    responses.cancel),
    Route("POST", "audio/speech/",                                      audio.speech),
    Route("POST", "audio/music/",                                       audio.music),
    Route("POST", "images/generate/",                                   images.generate),
    Route("GET",  "images/generate/{operation_id:path}/",               images.poll),
    Route("POST", "video/generation/",                                  video.start),
    # Operation ids hold slashes, so the longer form is looked for first.
    Route("GET",  "video/generation/{operation_id:path}/download/",     video.download),
    Route("GET",  "video/generation/{operation_id:path}/",              video.poll),
    Route("GET",  "credits/",                                           balance.balance),
    Route("GET",  "mcp/",                                               suites.listed, bearer=True),
    Route("POST", "mcp/{suite}/",                                       suites.rpc, bearer=True,
          wrong_method=SUITE_POST_ONLY),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Found:
    """A path that exists: its route, whether the method is the route's too, and the variable parts."""

    route: Route
    right_method: bool
    parts: Mapping[str, str]


class Router:
    """Matches raw targets, so that `%2F` stays inside its segment and nothing is tidied up."""

    def __init__(self, segment: str, *, strict_slashes: bool) -> None:
        self._strict = strict_slashes
        self._rows = [(_pattern(route, segment), route) for route in ROUTES]

    def find(self, method: str, raw_path: str) -> Found | None:
        if not raw_path.startswith(PREFIX):
            return None
        rest = raw_path.removeprefix(PREFIX)
        other: Found | None = None
        for pattern, route in self._rows:
            given = rest if rest.endswith("/") or not (route.either or not self._strict) else rest + "/"
            if match := pattern.fullmatch(given):
                parts = {name: unquote(value) for name, value in match.groupdict().items()}
                if route.method == method:
                    return Found(route, right_method=True, parts=parts)
                other = other or Found(route, right_method=False, parts=parts)
        return other


def _pattern(route: Route, segment: str) -> re.Pattern[str]:
    path = re.escape(route.path.replace(SEGMENT, segment))
    path = re.sub(r"\\\{(\w+):path\\\}", r"(?P<\1>.+)", path)
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", path))
