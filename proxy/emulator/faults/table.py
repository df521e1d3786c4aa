"""The faults, as a table.

A row acts at one of four places: on the request before its room sees it, instead of the room, on the answer, or on the
delivery.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import orjson

from proxy.emulator.answers import Answer
from proxy.emulator.faults import changes, deliveries, refusals
from proxy.emulator.faults.asking import Asked
from proxy.emulator.faults.changes import Change
from proxy.emulator.faults.deliveries import Delivery
from proxy.emulator.faults.frames import emptied, with_usage_twice, without_usage
from proxy.emulator.faults.refusals import says
from proxy.emulator.messages import (
    BAD_KEY,
    EDGE_BLOCK,
    INTERNAL,
    MAINTENANCE,
    MODEL_NOT_FOUND,
    NO_CREDITS,
    NOT_ENABLED,
    Message,
)
from proxy.emulator.script import Close, End, Reset
from proxy.emulator.world import Call


@dataclass(frozen=True, slots=True)
class Fault:
    """One row; exactly one of the four functions is there.

    call:     changes the request before the room sees it.
    instead:  answers in place of the room; nothing is charged.
    answer:   changes what the room answered; it was charged.
    delivery: changes how the answer reaches the caller; it was charged.
    """

    name: str
    help: str
    call: Callable[[Call], Call] | None = None
    instead: Callable[[Asked], Answer] | None = None
    answer: Change | None = None
    delivery: Delivery | None = None


def _unstreamed(call: Call) -> Call:
    return replace(call, body=orjson.dumps({**orjson.loads(call.body), "stream": False}))


_REMARK: Final = b": still here\n\n"
_EMPTY: Final = b"data:\n\n"
_PING: Final = b'event: ping\ndata: {"type":"ping"}\n\n'
_INVALID: Final = Message(400, "invalid parameter")


def _call(name: str, help_: str, act: Callable[[Call], Call]) -> Fault:
    return Fault(name, help_, call=act)


def _instead(name: str, help_: str, act: Callable[[Asked], Answer]) -> Fault:
    return Fault(name, help_, instead=act)


def _answer(name: str, help_: str, act: Change) -> Fault:
    return Fault(name, help_, answer=act)


def _delivery(name: str, help_: str, act: Delivery) -> Fault:
    return Fault(name, help_, delivery=act)


# fmt: off
FAULTS: Final[Mapping[str, Fault]] = {fault.name: fault for fault in (
    _instead(  "400",               "a parameter is refused; message=",                       says(_INVALID)),
    _instead(  "401",               "the key is refused",                                     says(BAD_KEY)),
    _instead(  "402",               "the balance is gone",                                    says(NO_CREDITS)),
    _instead(  "403",               "the model is not enabled",                               says(NOT_ENABLED)),
    _instead(  "404",               "the model is not found",                                 says(MODEL_NOT_FOUND)),
    _instead(  "422",               "the body does not fit",                                  refusals.unprocessable),
    _instead(  "429",               "over a limit; retry= S, past, date, decade, text, none", refusals.rate_limit),
    _instead(  "500",               "an internal error; message=",                            says(INTERNAL)),
    _instead(  "502",               "bad gateway; a suite did not respond",                   refusals.bad_gateway),
    _instead(  "503",               "maintenance; retry=",                                    says(MAINTENANCE)),
    _instead(  "paused",            "the suite is paused; retry=",                            refusals.paused),
    _instead(  "1010",              "the edge blocks, in plain text",                         says(EDGE_BLOCK)),
    _instead(  "html",              "an HTML error page; status=502",                         refusals.html(502)),
    _instead(  "html200",           "an HTML page with status 200",                           refusals.html(200)),
    _instead(  "empty-body",        "status=200 and no body",                                 refusals.nothing),
    _instead(  "redirect",          "a redirect; status=307 to=",                             refusals.redirect),
    _instead(  "status",            "any status; code=418 message= retry=",                   refusals.any_status),
    _call(     "json-for-stream",   "a JSON answer although a stream was asked for",          _unstreamed),
    _answer(   "empty",             "200 that says nothing, usage as it was",                 emptied),
    _answer(   "no-usage",          "usage nowhere",                                          without_usage),
    _answer(   "usage-twice",       "the event with usage comes twice",                       with_usage_twice),
    _answer(   "no-done",           "the last event of the stream is missing",                changes.no_end),
    _answer(   "error-midway",      "an error inside the stream; after=2 form= message=",     changes.error_midway),
    _answer(   "comments",          "a comment after every event",                            changes.between(_REMARK)),
    _answer(   "ping",              "a ping after every event",                               changes.between(_PING)),
    _answer(   "empty-data",        "an empty data line after every event",                   changes.between(_EMPTY)),
    _answer(   "crlf",              "CRLF line ends",                                         changes.crlf),
    _answer(   "split",             "the body in pieces of size=1 bytes",                     changes.split),
    _answer(   "join",              "the whole body in one piece",                            changes.join),
    _answer(   "big",               "one line of mb=1 megabytes more",                        changes.big),
    _answer(   "bare-list",         "a list without its wrapper",                             changes.bare_list),
    _answer(   "gzip",              "an encoding nobody asked for",                           changes.zipped(0)),
    _answer(   "bomb",              "gzip of mb=100 megabytes of blanks",                     changes.zipped(100)),
    _delivery( "slow",              "silence: head=S every=S, or gate=NAME at=0",             deliveries.slow),
    _delivery( "hang",              "never answers; after=N falls silent after N pieces",     deliveries.hang),
    _delivery( "reset-before-head", "the connection is reset instead of an answer",           deliveries.only(Reset())),
    _delivery( "close-before-head", "the connection is closed instead of an answer",          deliveries.only(Close())),
    _delivery( "reset-in-head",     "the connection is reset inside the head",                deliveries.reset_in_head),
    _delivery( "cut",               "reset after=2 pieces, or after bytes=N",                 deliveries.cut(Reset())),
    _delivery( "close",             "closed without an end after=2 pieces, or bytes=N",       deliveries.cut(Close())),
    _delivery( "clean-cut",         "a clean end after=2 pieces, or bytes=N",                 deliveries.cut(End())),
    _delivery( "bad-chunks",        "a chunk size that is no number",                         deliveries.bad_chunks),
    _delivery( "bad-headers",       "a bad line; form=nul, nocolon, space, fold, twice",      deliveries.bad_headers),
    _delivery( "many-headers",      "n=10000 headers",                                        deliveries.many_headers),
    _delivery( "lying-length",      "a Content-Length of one byte more than comes",           deliveries.lying_length),
    _delivery( "raw",               "the recording name=, byte for byte",                     deliveries.replayed),
)}
# fmt: on
"""Parameters stand in the help with their defaults. Every fault that is charged takes `charge=no` too."""
