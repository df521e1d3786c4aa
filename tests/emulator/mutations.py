"""Ways to break the emulator, one row at a time: the fact, what is changed, and into what.

`target` is `module:NAME`, then any of `.attribute` and `[key]`, where a key finds an item of a mapping, or the row of a
table whose `name` or `path` it is. `change` takes what was there and gives what takes its place.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from proxy.emulator.answers import Family, bad_parameter, event, event_answer
from proxy.emulator.catalog import Kind, Trait
from proxy.emulator.media import ImageFamily, VideoFamily
from proxy.emulator.rooms import native, responses
from proxy.emulator.shapes import Shape
from proxy.emulator.tools import Access


@dataclass(frozen=True)
class Mutation:
    fact: str
    target: str
    change: Callable[[Any], Any]

    def __str__(self) -> str:
        return f"{self.fact}-{self.target}"


def becomes(value):
    return lambda old: value


def more(number):
    return lambda old: old + number


def lacks(trait):
    return lambda traits: traits - {trait}


def gains(trait):
    return lambda traits: traits | {trait}


def always(value):
    """A function that no longer looks at what it is given."""
    return lambda old: lambda *args, **names: value


def after(change):
    """A function whose result is changed."""
    return lambda old: lambda *args, **names: change(old(*args, **names))


def refusing(old):
    def refuse(*args, **names):
        raise bad_parameter("broken")

    return refuse


def without_x_api_key(old):
    return lambda authorization, x_api_key: old(authorization, None)


def unlimited(old):
    return lambda said, stop, room: old(said, stop, None)


def endless(old):
    return lambda said, stop, room: old(said, (), room)


def free(old):
    return lambda value, **names: old(value, **{**names, "charge": 0})


def streamed(old):
    return lambda value, **names: event_answer([event(value)], Family.CHAT)


def no_usage(old):
    return lambda base, replies, usage: old(base, replies, None)


def short(count):
    return after(lambda frames: list(frames)[:-count])


def no_ping(frames):
    return [frame for frame in frames if b"event: ping" not in frame]


def optional(fields):
    return tuple(replace(field, required=False) for field in fields)


def no_beta(old):
    return lambda world, call, fields: refusing(old)() if "partner-beta" in call.headers else old(world, call, fields)


def reserving(old):
    def room(world, call):
        world.reserve(call)
        return old(world, call)

    return room


def reserving_tools(old):
    def room(world, call):
        world.reserve_tool(call, "calc")
        return old(world, call)

    return room


def in_foreground(old):
    return lambda world, call: old(world, replace(call, body=call.body.replace(b"background", b"foreground")))


def any_job(old):
    return lambda self, call, ident: next(job for (_, known), job in self.jobs.items() if known == ident)


def answering(**changes):
    """An answer with these fields changed."""
    return after(lambda answer: replace(answer, **changes))


MESSAGES = [
    ("auth-no-key", "NO_KEY"),
    ("auth-malformed", "NO_BEARER"),
    ("auth-unknown", "BAD_KEY"),
    ("auth-revoked", "BAD_KEY"),
    ("edge-block", "EDGE_BLOCK"),
    ("edge-first", "EDGE_BLOCK"),
    ("body-413-real", "BODY_TOO_LARGE"),
    ("error-500", "INTERNAL"),
    ("error-503", "MAINTENANCE"),
    ("models-one-404", "MODEL_NOT_FOUND"),
    ("model-404", "MODEL_NOT_FOUND"),
    ("model-403", "NOT_OFFERED"),
    ("chat-image-model", "MODEL_NOT_FOUND"),
    ("chat-responses-only", "RESPONSES_ONLY"),
    ("native-other-model", "NOT_NATIVE"),
    ("native-404", "MODEL_NOT_FOUND"),
    ("responses-other-model", "NOT_RESPONSES"),
    ("responses-404", "MODEL_NOT_FOUND"),
    ("speech-403", "NOT_ENABLED"),
    ("speech-403", "NOT_OFFERED"),
    ("speech-4000", "SPEECH_TOO_LONG"),
    ("image-403", "NOT_ENABLED"),
    ("video-403", "NOT_ENABLED"),
    ("video-pixels", "IMAGE_TOO_LARGE"),
    ("credits-402", "NO_CREDITS"),
    ("mcp-400", "BAD_RPC"),
    ("mcp-403", "SUITE_DISABLED"),
    ("mcp-404-unknown", "SUITE_UNKNOWN"),
    ("mcp-404-app", "SUITE_APP_ONLY"),
    ("mcp-405", "SUITE_POST_ONLY"),
    ("mcp-406", "SUITE_ACCEPT"),
    ("mcp-502", "SUITE_FAILED"),
    ("mcp-503", "SUITE_PAUSED"),
    ("limit-member", "RATE_LIMIT"),
    ("limit-chatbot", "RATE_LIMIT"),
    ("limit-tool-key-minute", "TOOL_LIMIT"),
    ("limit-tool-retry-after", "TOOL_LIMIT"),
]
"""Both the status and the sentence of each are broken, one after the other."""

STATUS_ONLY = {("limit-chatbot", "RATE_LIMIT")}
"""Tests that look at the status of a message and leave its sentence to another test."""

LIMITS = [
    ("limit-member", "MEMBER"),
    ("limit-chatbot", "CHATBOT"),
    ("limit-reservations", "RESERVATIONS"),
    ("limit-tool-key-minute", "KEY_MINUTE"),
    ("limit-tool-key-day", "KEY_DAY"),
    ("limit-tool-organization", "ORG_DAY"),
    ("limit-tool-suite-minute", "SUITE_MINUTE"),
    ("limit-tool-suite-day", "SUITE_DAY"),
]
"""The amount and the window of each are made larger and smaller by one."""

# fmt: off
OTHERS = [
    ("auth-bearer",                 "accounts:KEYS",                                 becomes({})),
    ("auth-x-api-key",              "gateway:key_of",                                without_x_api_key),
    ("auth-suites-bearer",          "routes:ROUTES[mcp/].bearer",                    becomes(False)),
    ("path-prefix",                 "routes:PREFIX",                                 becomes("/v2/gateway/")),
    ("path-slash",                  "routes:ROUTES[models/].either",                 becomes(True)),
    ("path-404",                    "messages:NO_SUCH_PATH.status",                  becomes(400)),
    ("body-limit",                  "gateway:BODY_BYTES_MAX",                        more(-1)),
    ("body-413-real",               "gateway:BODY_BYTES_MAX",                        more(1)),
    ("body-413-declared",           "messages:BODY_TOO_LARGE.status",                becomes(400)),
    ("error-422",                   "rooms.chat:FIELDS",                             lambda fields: fields[:2]),
    ("error-422-json",              "rooms.chat:read_shaped",                        refusing),
    ("models-list",                 "rooms.models:LISTS_WRAPPED",                    becomes(False)),
    ("models-order",                "rooms.models:accessible",                       after(lambda rows: rows[::-1])),
    ("models-type",                 "rooms.models:_kinds",                           always(frozenset(Kind))),
    ("models-422",                  "rooms.models:_kinds",                           always(frozenset(Kind))),
    ("models-one",                  "rooms.models:_entry",                           always({"id": "x"})),
    ("models-one-slash",            "routes:unquote",                                becomes(str)),
    ("native-models",               "routes:ROUTES[{segment}/v1/models/].either",    becomes(False)),
    ("chat-answer",                 "rooms.chat:_usage",                             after(lambda usage: {**usage, "total_tokens": 0})),
    ("chat-required",               "rooms.chat:FIELDS",                             optional),
    ("chat-roles",                  "rooms.chat_body:MESSAGE[role].choices",              becomes(("user",))),
    ("chat-stream",                 "rooms.chat:stream",                             short(1)),
    ("chat-stream-default",         "rooms.chat:json_answer",                        streamed),
    ("chat-include-usage",          "rooms.chat:stream",                             no_usage),
    ("chat-temperature",            "rooms.chat_body:TEMPERATURE_MAX",                    becomes(3)),
    ("chat-temperature-one",        "catalog:MODELS[gpt-x].traits",                  lacks(Trait.TEMPERATURE_ONE)),
    ("chat-top-k",                  "catalog:MODELS[gpt-4o].traits",                 gains(Trait.NATIVE)),
    ("chat-max-tokens",             "mind:_ended",                                   unlimited),
    ("chat-stop",                   "mind:_ended",                                   endless),
    ("limit-stop",                  "rooms.chat_body:STOP_MAX",                           more(1)),
    ("limit-stop",                  "rooms.chat_body:STOP_MAX",                           more(-1)),
    ("chat-tools",                  "mind:_tool",                                    always(None)),
    ("chat-tools-function",         "rooms.chat:check_ranges",                      always(None)),
    ("chat-tools-stream",           "mind:_tool",                                    always(None)),
    ("chat-tool-choice",            "rooms.chat:_forced",                            always(None)),
    ("chat-json-schema",            "mind:sample",                                   always({})),
    ("chat-json-schema-strict",     "rooms.chat_body:is_closed",                          always(True)),
    ("chat-json-schema-strict",     "rooms.chat_body:_check_format",                      always(None)),
    ("chat-reasoning-empty",        "mind:REASONING_BUDGET",                         more(1)),
    ("chat-reasoning-empty",        "mind:REASONING_BUDGET",                         more(-1)),
    ("chat-reasoning-counts",       "rooms.chat:reasoning_tokens",                   always(0)),
    ("chat-effort",                 "mind:REASONING_TOKENS",                         becomes({"medium": 5})),
    ("chat-effort-tools",           "catalog:MODELS[gpt-x-mini].traits",             lacks(Trait.NO_EFFORT_WITH_TOOLS)),
    ("chat-thinking-budget",        "rooms.chat_body:THINKING_BUDGET_MAX",                more(1)),
    ("chat-thinking-budget",        "rooms.chat_body:THINKING_BUDGET_MAX",                more(-1)),
    ("chat-thinking-budget-series", "catalog:MODELS[gem-3-pro].traits",              gains(Trait.THINKING_BUDGET)),
    ("chat-thinking-level",         "rooms.chat_body:LEVELS",                             becomes({})),
    ("chat-thinking-both",          "rooms.chat:check_model_rules",                 always(None)),
    ("chat-charge",                 "rooms.chat:json_answer",                        free),
    ("chatbot-answer",              "rooms.chatbots:CHATBOTS[7].credits",            becomes("3")),
    ("chatbot-charge",              "rooms.chatbots:CHATBOTS[7].credits",            becomes("3")),
    ("chatbot-files",               "rooms.chatbots:CHATBOTS[8].files",              becomes(False)),
    ("chatbot-stream",              "rooms.chatbots:_stream",                        short(2)),
    ("chatbot-messages",            "rooms.chatbots:unprocessable",                  always(bad_parameter("x"))),
    ("chatbot-roles",               "rooms.chatbots:FIELDS[messages].inside",         becomes(())),
    ("chatbot-id",                  "rooms.chatbots:unprocessable",                  always(bad_parameter("x"))),
    ("chatbot-404",                 "rooms.chatbots:CHATBOTS",                       lambda bots: {**bots, 12345: bots[7]}),
    ("chatbot-400",                 "rooms.chatbots:CHATBOTS[9].supported",          becomes(True)),
    ("native-answer",               "rooms.native:STOP_REASON",                      lambda words: dict.fromkeys(words, "x")),
    ("native-keys",                 "gateway:key_of",                                without_x_api_key),
    ("native-version",              "rooms.native_body:VERSION",                          becomes("2026-10-21")),
    ("native-segment",              "routes:_pattern",                               lambda old: lambda route, _: old(route, "partner")),
    ("native-beta",                 "rooms.native:judged",                          no_beta),
    ("native-required",             "rooms.native:FIELDS",                           optional),
    ("native-roles",                "rooms.native_body:MESSAGE[role].choices",            becomes(())),
    ("native-temperature",          "rooms.native_body:TEMPERATURE_MAX",                  becomes(2)),
    ("native-system",               "rooms.native:COUNT_FIELDS[system].shape",       becomes(Shape.STRING)),
    ("native-max-tokens",           "mind:_ended",                                   unlimited),
    ("native-stream",               "rooms.native:stream",                           after(no_ping)),
    ("native-tools",                "mind:_tool",                                    always(None)),
    ("native-thinking-adaptive",    "rooms.native:_reasoning",                       always(0)),
    ("native-thinking-manual",      "rooms.native_body:THINKING_BUDGET_MIN",              becomes(1)),
    ("native-effort",               "rooms.native:SIMPLE_CHARS",                     becomes(0)),
    ("native-effort",               "rooms.native:SIMPLE_CHARS",                     becomes(1000)),
    ("native-effort-max",           "catalog:MODELS[claude-sonnet-x].traits",        gains(Trait.EFFORT_MAX)),
    ("native-caching",              "rooms.native:CACHE_TTL_S",                      becomes(1000.0)),
    ("native-vision",               "words:PARTS",                                   becomes(frozenset())),
    ("native-count",                "routes:ROUTES[{segment}/v1/messages/count_tokens/].room", becomes(native.message)),
    ("native-count-broke",          "routes:ROUTES[{segment}/v1/messages/count_tokens/].room", reserving),
    ("responses-answer",            "rooms.responses:_value",                        after(lambda value: {**value, "object": "x"})),
    ("responses-required",          "rooms.responses:FIELDS[input].shape",           becomes(Shape.TEXT_OR_PARTS)),
    ("responses-codex",             "catalog:MODELS[gpt-x-codex].traits",            lacks(Trait.RESPONSES)),
    ("responses-default-budget",    "rooms.responses:OUTPUT_TOKENS_DEFAULT",         more(-1)),
    ("responses-instructions",      "rooms.responses:FIELDS[instructions].shape",    becomes(Shape.ARRAY)),
    ("responses-stream",            "rooms.responses:stream",                        short(1)),
    ("responses-reasoning",         "rooms.responses:reasoning_tokens",              always(0)),
    ("responses-reasoning-tools",   "mind:_tool",                                    always(None)),
    ("responses-starved",           "rooms.responses:_value",                        after(lambda value: {**value, "status": "completed"})),
    ("responses-format",            "mind:sample",                                   always({})),
    ("responses-background",        "routes:ROUTES[responses/].room",                in_foreground),
    ("responses-cancel",            "routes:ROUTES[responses/{response_id}/cancel/].room", becomes(responses.poll)),
    ("responses-chain",             "rooms.responses:_parent",                       always(None)),
    ("speech-pcm",                  "content:SAMPLE_RATE_HZ",                        becomes(16_000)),
    ("speech-headers",              "rooms.audio:AUDIO_TOKENS_PER_S",                becomes(20)),
    ("speech-voice",                "rooms.audio:VOICE_DEFAULT",                     becomes("Kore")),
    ("speech-voice",                "rooms.audio:VOICES",                            gains("Nobody")),
    ("speech-speakers",             "rooms.audio:_voices",                           always([])),
    ("speech-4000",                 "rooms.audio:SPEECH_CHARS_MAX",                  more(1)),
    ("speech-4000",                 "rooms.audio:SPEECH_CHARS_MAX",                  more(-1)),
    ("speech-price",                "media:SPEECH[speech-standard].token_price",     becomes(20)),
    ("speech-price",                "media:SPEECH[speech-premium].token_price",      becomes(10)),
    ("speech-required",             "rooms.audio:SPEECH_FIELDS",                     optional),
    ("music-mp3",                   "media:MUSIC[music-effects].credits",            becomes(11)),
    ("music-structure",             "media:MUSIC[music-effects].structured",         becomes(True)),
    ("music-required",              "rooms.audio:MUSIC_FIELDS",                      optional),
    ("audio-402",                   "messages:NO_CREDITS.status",                    becomes(400)),
    ("image-search",                "media:IMAGES[image-search-flash].family",       becomes(ImageFamily.LAB)),
    ("image-lab",                   "media:IMAGES[image-lab-large].family",          becomes(ImageFamily.SEARCH)),
    ("image-async",                 "media:IMAGES[image-a-sdxl].family",             becomes(ImageFamily.LAB)),
    ("image-poll-model",            "world:World.job",                               any_job),
    ("image-number",                "rooms.images:SEARCH_IMAGES_MAX",                more(1)),
    ("image-number",                "rooms.images:SEARCH_IMAGES_MAX",                more(-1)),
    ("image-prices",                "media:IMAGES[image-b-small].credits",           becomes(21)),
    ("image-inputs",                "rooms.images:INPUT",                            becomes(re.compile(".*"))),
    ("image-inputs-max",            "media:IMAGES[image-b-vector].inputs_max",       becomes(1)),
    ("image-404",                   "rooms.images:_unknown",                         always(bad_parameter("x"))),
    ("image-required",              "rooms.images:FIELDS",                           optional),
    ("image-402",                   "messages:NO_CREDITS.status",                    becomes(400)),
    ("video-start",                 "media:VIDEOS[video-600].number",                becomes(9)),
    ("video-id-slashes",            "media:VIDEOS[video-600].family",                becomes(VideoFamily.OTHER)),
    ("video-poll",                  "rooms.video:DURATION_DEFAULT_S",                becomes(5)),
    ("video-failed",                "rooms.video:FAILS",                             becomes("never")),
    ("video-uri",                   "media:VIDEOS[video-400].family",                becomes(VideoFamily.FIRST)),
    ("video-model-query",           "world:World.job",                               any_job),
    ("video-download",              "rooms.video:RANGE",                             becomes(re.compile("never"))),
    ("video-prices",                "media:VIDEOS[video-97].credits",                becomes(98)),
    ("video-input",                 "rooms.video:INPUTS_MAX",                        more(1)),
    ("video-pixels",                "rooms.video:PIXELS_MAX",                        becomes(36_006_000)),
    ("video-pixels",                "rooms.video:PIXELS_MAX",                        more(-1)),
    ("video-required",              "rooms.video:FIELDS",                            optional),
    ("video-402",                   "messages:NO_CREDITS.status",                    becomes(400)),
    ("credits-balance",             "rooms.balance:BALANCE_FIELD",                   becomes("balance")),
    ("mcp-list",                    "tools:SUITES[mailbox].access",                  becomes(Access.OPEN)),
    ("mcp-one-event",               "rooms.suites:event",                            lambda old: lambda value, name: old(value)),
    ("mcp-ids",                     "rooms.suites:_request",                         after(lambda request: {**request, "id": 1})),
    ("mcp-session",                 "rooms.suites:event_answer",                     answering(headers=(("Mcp-Session-Id", "x"),))),
    ("mcp-406",                     "rooms.suites:ACCEPTED",                         becomes(("application/json",))),
    ("mcp-accept-absent",           "rooms.suites:_check_accept",                    lambda old: lambda accept: old(accept or "")),
    ("mcp-503",                     "world:PAUSE_AFTER",                             more(1)),
    ("mcp-503",                     "world:PAUSE_S",                                 more(1)),
    ("mcp-initialize",              "rooms.suites:RPC_VERSIONS",                     becomes(("2025-06-18",))),
    ("mcp-tools-list",              "tools:SUITES[docs].tools",                      becomes({})),
    ("mcp-tools-call",              "tools:_number",                                 always("0")),
    ("mcp-tool-errors",             "rooms.suites:call_tool",                        always("x")),
    ("mcp-unknown-tool",            "rooms.suites:INVALID_PARAMS",                   becomes(-1)),
    ("mcp-unknown-method",          "rooms.suites:METHOD_NOT_FOUND",                 becomes(-1)),
    ("mcp-free",                    "rooms.suites:event_answer",                     answering(calls="mcp:calc")),
    ("mcp-counted",                 "rooms.suites:event_answer",                     answering(calls=None)),
    ("mcp-not-counted",             "faults.table:FAULTS[502].instead",              answering(calls="mcp:calc")),
    ("mcp-price",                   "rooms.suites:event_answer",                     answering(charge=5)),
    ("limit-per-member",            "gateway:KEYS",                                  lambda keys: {**keys, "sk-emu-alpha-2": "beta"}),
    ("limit-tool-besides",          "limits:MEMBER.amount",                          more(1)),
    ("limit-tool-only",             "routes:ROUTES[mcp/{suite}/].room",              reserving_tools),
    ("limit-tool-retry-after",      "world:tool_limit_answer",                       answering(headers=())),
]
# fmt: on


def _all():
    for fact, name in MESSAGES:
        yield Mutation(fact, f"messages:{name}.status", more(1))
        if (fact, name) not in STATUS_ONLY:
            yield Mutation(fact, f"messages:{name}.text", lambda text: f"Sorry, {text}")
    for fact, name in LIMITS:
        for attribute in ("amount", "window_s"):
            yield Mutation(fact, f"limits:{name}.{attribute}", more(1))
            yield Mutation(fact, f"limits:{name}.{attribute}", more(-1))
    yield from (Mutation(*row) for row in OTHERS)


MUTATIONS = list(_all())
