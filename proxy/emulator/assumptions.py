"""What the documentation does not show, decided once and plainly. `docs/gateway-facts.md` repeats this list.

Every constant here is a guess about the real gateway. Where one of them turns out wrong, this is the place to mend it.
"""

from typing import Final

VENDOR_A: Final = "Anthropic"
"""The vendor named in the refusal of the native endpoints; the documentation has a stand-in here."""

VENDOR_B: Final = "OpenAI"
"""The vendor named in the refusal of the Responses-style endpoints; the documentation has a stand-in here."""

LISTS_WRAPPED: Final = True
"""Lists of models and suites come as `{"object": "list", "data": [...]}`, the form SDKs of that format read."""

BALANCE_FIELD: Final = "credits"
"""Name of the field that holds the balance, a JSON number of credits."""

CREATED: Final = 1_790_000_000
"""`created` and `created_at` everywhere, in Unix seconds: a fixed instant, so that answers repeat."""

CREATED_TEXT: Final = "2026-09-21T14:13:20Z"
"""The same instant in the native model list."""

REASONING_BUDGET: Final = 4096
"""Below this output budget a reasoning model answers 200 with an empty text, always; the documentation says "can"."""

REASONING_TOKENS: Final = {"minimal": 128, "low": 512, "medium": 1024, "high": 2048, "max": 3072}
"""Reasoning tokens by effort; all fit under `REASONING_BUDGET`. Absent means medium."""

PAUSE_S: Final = 30
"""How long a suite is paused, in real seconds."""

PAUSE_AFTER: Final = 3
"""Calls in a row that a suite fails to answer (502) before it is paused."""

CACHE_TTL_S: Final = 300.0
"""How long a native cached prefix lives after its last use, in emulated seconds."""

RPC_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Protocol versions of the tool suites, newest first: an unknown one gets the newest offered, as a header it is 400."""

# Decided in code, where they are one line:
#
# order         edge block, path, declared length, key, real length, wrong method, general limit, then the endpoint.
# status        A body of the wrong shape is 422, a value outside a documented range is 400 (chatbot `messages` is 422).
# native        What the vendor would judge is answered in the vendor's form: 400 {"type": "error", "error": {...}}.
# User-Agent    A missing one is an empty one: blocked.
# 429           Retry-After on tool suites only.
# two keys      When both headers are sent, Authorization is judged. Tool suites read Authorization only.
# x-api-key     It is accepted on the native endpoints, as their header table says; the sentence that a client's API-key
#               setting gives 401 is about a client and cannot hold for the header as well.
# responses-only on chat: the error table's 400, not the endpoint description's 404.
# balance       A call is refused when the balance is not above 0; the last call may take it below.
# charge        The whole answer is charged when it is ready, whether or not the caller stays to read it.
# cancelling    A cancelled response shows no usage and keeps its charge.
# counting      A request refused by a limit does not count under it. 413, 401 and the edge block count nowhere.
# reservations  Counted after a request proved valid, just before its credits are checked.
# tool limits   Counted when a call is let through, whatever becomes of it; billing counts 2xx only.
# organization  All keys belong to one; suites are counted within it.
# notifications A JSON-RPC body without an id is 400 "Invalid JSON-RPC request": the suites take requests only.
# server/discover is a method like any unknown one: -32601 in a 200.
# content type  The request's is not looked at; the body is parsed as JSON.
# cached input  Chat and Responses report 0 cached tokens; the native endpoint remembers prefixes per member.
# ids           Differ from call to call: they derive from seed, request and how often that request was seen before.
