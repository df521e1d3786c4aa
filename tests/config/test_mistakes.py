"""What people write by mistake, and the sentence each of them reads: the place, what it is, what to write."""

import pytest

from proxy.config.policyfile import load_policies
from proxy.config.problem import Problems
from proxy.core.facts import ROUTES
from proxy.server.routes import ROUTES as SERVED

BUDGET = "budgets: [{{ name: a, credits: 1, per: day, {} }}]"
AMOUNT = "budgets: [{{ name: a, per: day, credits: {} }}]"
RATE = "rates: [{{ name: a, requests: 1, within: 1s, {} }}]"
CACHE = "cache: [{{ ttl: 1h, match: {{ {} }} }}]"
PRICE = "prices: [{{ {} }}]"
IN_DIGITS = "write an amount of credits in digits with a point, such as 3000 or 0.25"


def said_of(folder, text):
    (folder / "a.yaml").write_text(text)
    with pytest.raises(Problems) as refused:
        load_policies(folder)
    return [str(problem).removeprefix(f"{folder}/") for problem in refused.value.problems]


# fmt: off
MISTAKES = [
    # what stands there                                    what is read of it
    (BUDGET.format("match: { route: chats }"),             "budgets.0.match.route: there is no route 'chats'; did you mean chat?"),
    (RATE.format("match: { route: immages }"),              "rates.0.match.route: there is no route 'immages'; did you mean images?"),
    (CACHE.format("route: 'chat*'"),                       "cache.0.match.route: there is no route 'chat*'; did you mean chat?"),
    (BUDGET.format("match: { suite: 'docs*' }"),           "budgets.0.match.suite: 'docs*' is a pattern, and here stands one name"),
    (RATE.format("match: { method: tools/cal }"),          "rates.0.match.method: 'tools/cal' is no method of MCP; did you mean tools/call?"),
    (RATE.format("match: { method: POST }"),               "rates.0.match.method: 'POST' is no method of MCP; known are "),
    (CACHE.format("team: nobody"),                         "cache.0.match.team: there is no team 'nobody'; known are default"),
    (BUDGET.format("each: team, amounts: { defalt: 5 }"),  "budgets.a.amounts.defalt: there is no team 'defalt'; did you mean default?"),
    (RATE.format("each: team, amounts: { defalt: 5 }"),    "rates.a.amounts.defalt: there is no team 'defalt'; did you mean default?"),
    (BUDGET.format("instead_of: a"),                       "budgets.a.instead_of: there is no other budget 'a'; leave it out"),
    (BUDGET.format("warn_at: [50]"),                       "budgets.0.warn_at.0: 50 is more than the whole amount, which is 1; write 0.5 for 50 %"),
    (BUDGET.format("warn_at: [0]"),                        "budgets.0.warn_at.0: 0 is no share of the amount; write more than 0 and at most 1"),
    (BUDGET.format('warn_at: ["0.5"]'),                    "budgets.0.warn_at.0: expected a number, not '0.5'; write it in digits, without quotes"),
    (BUDGET.format("warn_at: [0.8, 0.5, 0.50]"),           "budgets.0.warn_at: 0.5 stands here twice; take one of them out"),
    (BUDGET.format("warn_at: [1, 0.5, 1.0]"),              "budgets.0.warn_at: 1 stands here twice; take one of them out"),
    (BUDGET.format("warn_at: [50%]"),                      "budgets.0.warn_at.0: '50%' is text; write 0.5, the share of the amount"),
    (BUDGET.format("shadow: yes"),                         "budgets.0.shadow: expected true or false, not 'yes'; write true or false"),
    (BUDGET.format("timezone: Asia/Soul"),                 "budgets.0.timezone: 'Asia/Soul' is no time zone; did you mean Asia/Seoul?"),
    (BUDGET.format("each: teams"),                         "budgets.0.each: 'teams' is not one of team, key, model, suite, tool, credential, member; did you mean team?"),
    (BUDGET.format("5: 6"),                                "budgets.0.5: is not known; known are "),
    (BUDGET.format("instead_of:"),                         "budgets.0.instead_of: is empty; say something, or leave it out"),
    (BUDGET.format("instead_of: [c-gen]"),                 "budgets.0.instead_of: expected text, not a list; only one is wanted here: write instead_of: c-gen"),
    (RATE.format('match: { model: ["*-a", b] }'),          'rates.0.match.model: expected text, not a list; only one is wanted here: write model: "*-a"'),
    (BUDGET.format("instead_of: { c-gen: 1 }"),            "budgets.0.instead_of: expected text, not keys and values; write one text"),
    ("open_team: []",                                      "open_team: expected text, not a list; write one text"),
    ("teams: { a: { models: [[gpt-4o]] } }",               "teams.a.models.0: expected text, not a list; write one text"),
    ("budgets: { name: a }",                               "budgets: expected a list, not keys and values; write it in brackets"),
    ("budgets: [lunch]",                                   "budgets.0: expected keys and values, not 'lunch'; write { word: value }"),
    (AMOUNT.format("1,5"),                                 "budgets.0.credits: 1,5 is two things here: in { } a comma begins the next key; write an amount with a point"),
    (AMOUNT.format('"1,5"'),                               f"budgets.0.credits: '1,5' is not an amount of credits; {IN_DIGITS}"),
    (AMOUNT.format("1e400"),                               f"budgets.0.credits: 1e400 is not an amount between 0 and 90071992.54740992 credits; {IN_DIGITS}"),
    (AMOUNT.format("-5"),                                  "budgets.0.credits: -5 is not an amount between 0 and"),
    (AMOUNT.format(".inf"),                                f"budgets.0.credits: .inf is not an amount of credits; {IN_DIGITS}"),
    (AMOUNT.format("[1]"),                                 f"budgets.0.credits: expected an amount of credits, not this; {IN_DIGITS}"),
    (AMOUNT.format("1.123456789012345"),                   "budgets.0.credits: 1.123456789012345 has more than 8 decimals, the most that an amount has; write fewer"),
    (AMOUNT.format('"0.000000001"'),                       "budgets.0.credits: 0.000000001 has more than 8 decimals"),
    (AMOUNT.format("1e-9"),                                "budgets.0.credits: 1e-9 has more than 8 decimals"),
    *((AMOUNT.format(odd),                                 f"budgets.0.credits: {odd} is read as one number here and as another there; write plain decimal digits")
      for odd in ("0x10", "0o17", "010", "1_000")),
    *((AMOUNT.format(f'"{odd}"'),                          f"budgets.0.credits: '{odd}' is not an amount of credits; {IN_DIGITS}")
      for odd in ("10 ", " 10", "٣", "010", "0x10", "1_000", "$5", "")),
    (PRICE.format("models: a, per_call: ٣"),               "prices.0.per_call: '٣' is not an amount of credits"),
    (PRICE.format("models: a, input_per_million: 1"),      "prices.0: says input_per_million alone, and the other would be free: say output_per_million too, 0 where"),
    (PRICE.format("models: a, output_per_million: 1"),     "prices.0: says output_per_million alone, and the other would be free: say input_per_million too, 0 where"),
    (PRICE.format("chatbots: 7, input_per_million: 1"),    "prices.0: chatbots are priced by the call: say per_call, and leave out input_per_million"),
    (PRICE.format("models: a, per_call: 1, cached_input_per_million: 1"), "prices.0: cached_input_per_million goes with input_per_million"),
    ("unpriced: ignore",                                   "unpriced: 'ignore' is not what can be said here; write refuse, or { hold: 100 }"),
    ("unpriced: { hodl: 1, hold: 2 }",                     "unpriced.hodl: is not known; did you mean hold?"),
    *((f'heartbeat: "{odd}"',                              f"heartbeat: '{odd}' is not a duration; write digits and one of ms, s, m, h, d, w")
      for odd in ("15 ", "٣0s", "015s", "1_5", "5 m", "soon")),
    ("heartbeat: 0x10",                                    "heartbeat: 0x10 is read as one number here and as another there"),
    ("heartbeat: 1h",                                      "heartbeat: '1h' is too large: it may be at most 600s"),
    ("heartbeat: [15]",                                    "heartbeat: a duration is a number of seconds or text such as 30s; write digits"),
    (RATE.replace("1,", "1_0,").format("shadow: true"),    "rates.0.requests: 1_0 is read as one number here and as another there"),
    (RATE.replace("1,", "'10',").format("shadow: true"),   "rates.0.requests: expected a whole number, not '10'; write digits only, without quotes"),
    (RATE.replace("1,", "1.5,").format("shadow: true"),    "rates.0.requests: expected a whole number, not 1.5; write digits only"),
    ('teams: { default: { weight: "2_5" } }',              "teams.default.weight: expected a number, not '2_5'; write it in digits, without quotes"),
    ("teams: { default: { weight: true } }",               "teams.default.weight: expected a number, not true"),
    ("teams: { default: { models: } }",                    "teams.default.models: is empty; say something, or leave it out; [] is an empty list"),
    ("teams: { default: { models: gpt } }",                "teams.default.models: expected a list, not 'gpt'; write it in brackets"),
    ("teams: { default: { group: 1.5 } }",                 "teams.default.group: 1.5 is no member group; write its id, such as 12, or its name"),
    ("teams: { default: { cache: shred } }",               "teams.default.cache: 'shred' is not one of team, shared, off; did you mean shared?"),
    ("aliases: { 'gpt-*': x }",                            "aliases.gpt-*: 'gpt-*' is a pattern, and here stands one name; write the name"),
    ("aliases: { a: a }",                                  "aliases.a: stands for itself in the end (a → a); say a model of the gateway's"),
    ("aliases: { z: b, a: b, b: c, c: a }",                "aliases.b: stands for itself in the end (b → c → a → b); say a model of the gateway's"),
    ("tool_aliases: { a: calc }",                          "tool_aliases.a: names no tool: write suite.tool, such as calc.add"),
    ("tool_aliases: { a__b: calc.add }",                   "tool_aliases.a__b: is not a name for a tool: letters, digits, - and single _"),
]
# fmt: on


@pytest.mark.parametrize(("text", "sentence"), MISTAKES)
def test_a_mistake_is_told_in_words_for_people(tmp_path, text, sentence):
    (said,) = said_of(tmp_path, text)
    place, _, rest = said.partition(": ")
    assert place.startswith("a.yaml:1:")
    assert rest.startswith(sentence)


# fmt: off
RIGHT = [
    AMOUNT.format("1.12345678"), AMOUNT.format('"1.5"'), AMOUNT.format("1.500000000"), AMOUNT.format("1e3"), AMOUNT.format("0"),
    BUDGET.format("each: key, amounts: { anna: 5 }"),       # keys are issued by command, too
    BUDGET.format("match: { key: anna }"),
    RATE.format("match: { method: acme/do }"),              # suites may have methods of their own
    PRICE.format("models: a, input_per_million: 1, output_per_million: 0"),
    "aliases: { a: b, b: c }",
    "heartbeat: 1m30s", "heartbeat: 15.5", 'heartbeat: "15"',
    "unpriced: refuse", "unpriced: { hold: 0.5 }",
    "teams: { default: { group: 12 } }", "teams: { default: { group: Engineering } }",
]
# fmt: on


@pytest.mark.parametrize("text", RIGHT)
def test_what_may_be_right_is_not_refused(tmp_path, text):
    (tmp_path / "a.yaml").write_text(text)
    load_policies(tmp_path)


def test_an_amount_is_what_stands_in_the_file(tmp_path):
    (tmp_path / "a.yaml").write_text(AMOUNT.format("1234567.12345678"))
    assert load_policies(tmp_path).budgets[0].amount == 123_456_712_345_678


def test_the_routes_that_a_policy_may_name_are_those_that_lead_to_the_gateway():
    assert {route.name for route in SERVED if route.upstream is not None} == ROUTES


def test_limits_that_take_over_from_one_another_are_told_once(tmp_path):
    limit = "{{ name: {}, credits: 1, per: day, instead_of: {} }}"
    rows = ", ".join(limit.format(*pair) for pair in ("ab", "bc", "cb"))
    (said,) = said_of(tmp_path, f"budgets: [{rows}]")
    assert "budgets.b.instead_of: takes over from itself in the end (b → c → b); take one instead_of out" in said


def test_one_budget_tells_everything_that_does_not_go_together(tmp_path):
    (said,) = said_of(tmp_path, "budgets: [{ name: a, credits: 1, within: 1h, timezone: Asia/Seoul, excess: wait }]")
    assert said == (
        "a.yaml:1:11: budgets.0: timezone goes with per; a sliding window has none; a budget cannot wait: say refuse or warn"
    )


TWICE = """\
teams:
  a: { wait_max: soon }
  b: {}
  a: { kyes: 1, wait_max: 5s }
budgets:
  - { name: x, credits: 1, per: day, match: { team: e } }
  - { name: y, credits: 1, credits: 1_0, per: day }
heartbeat: 15
teams:
  c: { weight: "2" }
  d: {}
open_team: d
budgets:
  - { name: x, credits: -1, per: day }
  - { name: z, credits: 1, per: day, match: { team: ee }, instead_of: y }
heartbeat: 0
"""
# fmt: off
SAID = (
    ("2:8",   "teams.a.wait_max: 'soon' is not a duration"),
    ("4:3",   "teams.a: the key stands at a.yaml:2:3 already; take one of them out"),
    ("4:8",   "teams.a.kyes: is not known; did you mean keys?"),
    ("6:5",   "budgets.x.match.team: there is no team 'e'"),
    ("7:28",  "budgets.1.credits: the key stands at a.yaml:7:16 already"),
    ("7:37",  "budgets.1.credits: 1_0 is read as one number here"),
    ("9:1",   "teams: the key stands at a.yaml:1:1 already"),
    ("10:8",  "teams.c.weight: expected a number, not '2'"),
    ("13:1",  "budgets: the key stands at a.yaml:5:1 already"),
    ("14:7",  "budgets.0.name: the budget 'x' stands at a.yaml:6:7 already"),
    ("14:16", "budgets.0.credits: -1 is not an amount"),
    ("15:5",  "budgets.z.match.team: there is no team 'ee'"),
    ("16:1",  "heartbeat: the key stands at a.yaml:8:1 already"),
    ("16:1",  "heartbeat: 0 is too small: it must be at least 1s"),
)
# fmt: on


def test_keys_that_stand_twice_hide_nothing_else_and_make_no_noise(tmp_path):
    said = [text.replace(f"{tmp_path}/", "") for text in said_of(tmp_path, TWICE)]
    assert len(said) == len(SAID), said
    for place, sentence in SAID:
        assert any(text.startswith(f"a.yaml:{place}: {sentence}") for text in said), (place, sentence, said)


def test_a_setting_that_stands_twice_is_told_once(tmp_path):
    (said,) = said_of(tmp_path, "errors: hybrid\nerrors: passthrough\n")
    assert said.replace(f"{tmp_path}/", "") == (
        "a.yaml:2:1: errors: the key stands at a.yaml:1:1 already; take one of them out"
    )


SOUND = """\
unpriced: { hold: lots }
teams: { a: { kyes: 1 }, b: {} }
open_team: nobody
members: { m: [zz] }
aliases: { x: [], y: z, z: y }
budgets:
  - { name: broken, credits: 1, per: day, match: { team: ghost }, excess: hope }
  - { name: sound, credits: 1, per: day, match: { team: ghost }, instead_of: nothing }
  - { name: also, credits: 1, per: day, match: { team: a }, instead_of: broken }
  - { name: sound, credits: 2, per: day }
"""


def test_what_sound_items_say_is_judged_beside_broken_ones(tmp_path):
    assert [path_of(text) for text in said_of(tmp_path, SOUND)] == [
        *("unpriced.hold", "teams.a.kyes", "members.m.0", "aliases.x", "budgets.0.excess"),
        *("budgets.3.name", "open_team", "budgets.sound.match.team", "budgets.sound.instead_of", "aliases.y"),
    ]


def path_of(text):
    return text.split(": ")[1]
