import hashlib
import re
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from proxy.config.made import GATEWAY, gateway_rates
from proxy.config.policyfile import PolicyProblems, load_policies
from proxy.core.limits import Counts, Each, Excess
from proxy.core.policy import (
    DEFAULT_POLICY,
    Balance,
    ErrorForm,
    KeyRef,
    McpErrors,
    NativeVersion,
    Policy,
    RateHeaders,
    Storms,
    StreamUsage,
    Team,
    UnknownIds,
)
from proxy.core.pricing import Estimate
from proxy.core.windows import Calendar, Per, Sliding

CI, LAPTOP = (hashlib.sha256(text.encode()).hexdigest() for text in ("sk-ci", "sk-laptop"))

DURATION = "write digits and one of ms, s, m, h, d, w, such as 30s or 1h30m"

WITHOUT_FILES = replace(DEFAULT_POLICY, rates=gateway_rates())


def a_folder(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def problems_of(tmp_path, **files):
    with pytest.raises(PolicyProblems) as caught:
        load_policies(a_folder(tmp_path, **files))
    return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]


def the_problem(tmp_path, text):
    """The only one, and its place."""
    (problem,) = problems_of(tmp_path, a=text)
    return problem


def test_everything_that_acts_can_be_said(tmp_path):
    text = f"""
        teams:
          search:
            keys: [{{ id: ci, sha256: "{CI}" }}, {{ id: laptop, sha256: "{LAPTOP.upper()}" }}]
            gateway_balance: show
            wait_max: 1m30s
            weight: 2.5
          batch: {{}}
        open_team: batch
        errors: passthrough
        mcp_errors: tool_result
        stream_usage: inject
        native_version: pass
        unknown_ids: refuse
        heartbeat: 15
        expires_after: 30m
        gateway_limits: own
        rate_headers: hide
        storms: pass
        members: {{ alpha: ["{CI.upper()}", "{LAPTOP}"] }}
        """
    assert load_policies(a_folder(tmp_path, all=text)) == Policy(
        teams={
            "search": Team(
                "search",
                (KeyRef("ci", bytes.fromhex(CI)), KeyRef("laptop", bytes.fromhex(LAPTOP))),
                Balance.SHOW,
                90.0,
                weight=2.5,
            ),
            "batch": Team("batch"),
        },
        open_team="batch",
        errors=ErrorForm.PASSTHROUGH,
        mcp_errors=McpErrors.TOOL_RESULT,
        stream_usage=StreamUsage.INJECT,
        native_version=NativeVersion.PASS,
        unknown_ids=UnknownIds.REFUSE,
        heartbeat_s=15.0,
        expires_after_s=1800.0,
        rate_headers=RateHeaders.HIDE,
        storms=Storms.PASS,
        members={CI[:12]: "alpha", LAPTOP[:12]: "alpha"},
    )


def test_a_key_of_a_file_finds_its_team(tmp_path):
    policy = load_policies(a_folder(tmp_path, a=f'teams: {{ search: {{ keys: [{{ id: ci, sha256: "{CI}" }}] }} }}'))
    assert policy.team_of_key("sk-ci", 0.0) == (policy.teams["search"], "ci")


def test_without_files_the_default_holds(tmp_path):
    assert load_policies(tmp_path / "none") == WITHOUT_FILES
    assert load_policies(tmp_path) == WITHOUT_FILES
    (tmp_path / "README.md").write_text("not a policy")
    (tmp_path / ".hidden.yaml").write_text("not: a policy")
    assert load_policies(tmp_path) == WITHOUT_FILES


@pytest.mark.parametrize("text", ["", "# nothing\n", "errors: hybrid", "teams: {}", "open_team: default"])
def test_files_that_say_nothing_of_teams_leave_the_default_one(tmp_path, text):
    assert load_policies(a_folder(tmp_path, a=text)) == WITHOUT_FILES


def test_files_of_a_folder_are_merged(tmp_path):
    policy = load_policies(a_folder(tmp_path, a="teams: { a: {} }", b="teams: { b: {} }", c="open_team: b"))
    assert list(policy.teams) == ["a", "b"]
    assert policy.open_team == "b"


def test_with_teams_and_no_open_team_nobody_comes_in_without_a_key(tmp_path):
    assert load_policies(a_folder(tmp_path, a="teams: { default: {} }")).team_of_open() is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tems: {}", "a.yaml:1:1: tems: is not known; did you mean teams?"),
        ("teams:\n  a: { keyz: [] }", "a.yaml:2:8: teams.a.keyz: is not known; did you mean keys?"),
        (
            'teams:\n  a:\n    keys:\n      - { id: ci, sha265: "00" }',
            "a.yaml:4:9: teams.a.keys.0.sha256: is missing; add sha256: …",
        ),
        (
            "teams:\n  a: { gateway_balance: yes }",
            "a.yaml:2:8: teams.a.gateway_balance: 'yes' is not one of show, hide",
        ),
        ("heartbeat: 0.5s", "a.yaml:1:1: heartbeat: '0.5s' is too small: it must be at least 1s"),
        (
            "teams: { a: { wait_max: true } }",
            "a.yaml:1:15: teams.a.wait_max: a duration is a number of seconds or text such as 30s; " + DURATION,
        ),
        (
            "teams: { a: { wait_max: 2h } }",
            "a.yaml:1:15: teams.a.wait_max: '2h' is too large: it may be at most 3600s",
        ),
        ("teams: { a: { wait_max: -1 } }", "a.yaml:1:15: teams.a.wait_max: -1 is not a duration; " + DURATION),
        ("teams: { a: { wait_max: .inf } }", "a.yaml:1:15: teams.a.wait_max: .inf is not a duration; " + DURATION),
        ("teams: { a: { wait_max: .nan } }", "a.yaml:1:15: teams.a.wait_max: .nan is not a duration; " + DURATION),
        ("teams: [a]", "a.yaml:1:1: teams: expected keys and values, not a list; write { word: value }"),
        (
            "teams: { a: { keys: ci } }",
            "a.yaml:1:15: teams.a.keys: expected a list, not 'ci'; write it in brackets: [ … ]",
        ),
        ("teams: { 7: {} }", 'a.yaml:1:10: teams.7: expected text, not 7; write it in quotes ("…")'),
        ("teams: { 1.50: {} }", 'a.yaml:1:10: teams.1.50: expected text, not 1.50; write it in quotes ("…")'),
        ("open_team: 2026-01-01", "a.yaml:1:1: open_team: there is no team '2026-01-01'; known are default"),
        (
            'teams: { "a b": {} }',
            "a.yaml:1:10: teams.a b: is not a name: letters, digits and . _ - , at most 64, the first a letter or digit",
        ),
        ("open_team: nobody", "a.yaml:1:1: open_team: there is no team 'nobody'; known are default"),
        (
            "teams: { serach: {} }\nopen_team: search",
            "a.yaml:2:1: open_team: there is no team 'search'; did you mean serach?",
        ),
        (
            "- a",
            "a.yaml:1:1: expected keys and values at the top of the file; begin with a word and a colon, such as teams:",
        ),
        ("teams: {", "a.yaml:1:9: expected the node content, but found '<stream end>'; close each { and ["),
        ("teams: {}\nteams: {}", "a.yaml:2:1: teams: the key stands at a.yaml:1:1 already; take one of them out"),
        ("teams: { a: &a {}, b: *a }", "a.yaml:1:23: teams.b: aliases are not read; write the value out"),
        ("teams: { a: { <<: { keys: [] } } }", "a.yaml:1:15: teams.a.<<: merge keys are not read; write the keys out"),
        ("open_team: !!str 7", "a.yaml:1:12: open_team: tags are not read; write the plain value"),
        (
            "errors: hybrid\n---\nb: 2",
            "a.yaml:2:1: expected a single document in the stream but found another document; put it into a file of its own",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, problem):
    assert problem in problems_of(tmp_path, a=text)


def test_a_digest_that_is_none_is_refused_without_being_shown(tmp_path):
    """Whoever mistakes the field writes the key itself there."""
    (problem,) = problems_of(tmp_path, a='teams: { a: { keys: [{ id: ci, sha256: "sk-my-real-key" }] } }')
    assert (
        problem
        == "a.yaml:1:32: teams.a.keys.0.sha256: is not a SHA-256 digest: 64 hexadecimal digits; take that of the key: printf %s KEY | sha256sum"
    )


@pytest.mark.parametrize("text", ["teams: { a: { keys: [{ id: ci, sha256: 4711 }] } }", "members: { a: [4711] }"])
def test_a_number_where_a_digest_belongs_is_not_shown_either(tmp_path, text):
    (problem,) = problems_of(tmp_path, a=text)
    assert problem.endswith(': expected text; write it in quotes ("…")')


def test_the_same_team_in_two_files_names_both_places(tmp_path):
    assert problems_of(tmp_path, a="teams:\n  x: {}", b="teams:\n  y: {}\n  x: {}") == [
        f"b.yaml:3:3: teams.x: the team stands at {tmp_path}/a.yaml:2:3 already; take one of them out".replace(
            f"{tmp_path}/", ""
        )
    ]


def test_the_same_setting_in_two_files_names_both_places(tmp_path):
    (problem,) = problems_of(tmp_path, a="errors: hybrid", b="errors: passthrough")
    assert problem == "b.yaml:1:1: errors: the setting stands at a.yaml:1:1 already; take one of them out"


def test_one_key_in_two_teams_names_both_places(tmp_path):
    """Whose budget would it draw on?"""
    team = 'teams: {{ {name}: {{ keys: [{{ id: ci, sha256: "{digest}" }}] }} }}'
    (problem,) = problems_of(tmp_path, a=team.format(name="a", digest=CI), b=team.format(name="b", digest=CI.upper()))
    assert problem == "b.yaml:1:32: teams.b.keys.0.sha256: the key stands at a.yaml:1:32 already; take one of them out"


def test_two_keys_of_a_team_need_two_ids(tmp_path):
    text = f'teams:\n  a:\n    keys:\n      - {{ id: ci, sha256: "{CI}" }}\n      - {{ id: ci, sha256: "{LAPTOP}" }}'
    (problem,) = problems_of(tmp_path, a=text)
    assert problem == "a.yaml:5:11: teams.a.keys.1.id: the id 'ci' stands at a.yaml:4:11 already; take one of them out"


def test_problems_of_all_files_come_at_once_in_order(tmp_path):
    found = problems_of(
        tmp_path,
        a="heartbeat: soon\nerors: hybrid\nteams:\n  x: { keyz: 1 }\n",
        b="teams: {",
        c="open_team: x\nteams:\n  x: {}\n",
    )
    assert [re.match(r"[^ ]+(?=: )", problem)[0] for problem in found] == [
        "a.yaml:1:1", "a.yaml:2:1", "a.yaml:4:8", "b.yaml:1:9", "c.yaml:3:3"
    ]  # fmt: skip


def test_a_file_of_the_other_ending_is_not_skipped_in_silence(tmp_path):
    (tmp_path / "limits.yml").write_text("teams: {}")
    assert problems_of(tmp_path) == ["limits.yml: is not read; rename it to .yaml, or move it away"]


@pytest.mark.parametrize(
    ("raw", "says"),
    [(b"teams: \xff", "is not UTF-8 at byte 7"), (b"#" * (1024 * 1024 + 1), "is larger than 1,048,576 bytes")],
)
def test_a_file_that_is_no_text_or_no_policy_by_size_is_refused(tmp_path, raw, says):
    (tmp_path / "a.yaml").write_bytes(raw)
    assert says in problems_of(tmp_path)[0]


def test_an_unreadable_file_is_a_problem(tmp_path):
    (tmp_path / "a.yaml").symlink_to(tmp_path / "gone")
    assert problems_of(tmp_path) == ["a.yaml: cannot be read (No such file or directory)"]


def test_words_that_other_readers_take_for_values_stay_words(tmp_path):
    """`no`, `off` and `12:30` are false, false and 750 to readers of YAML 1.1."""
    policy = load_policies(a_folder(tmp_path, a="teams: { no: {}, off: {}, y: {} }\nopen_team: no"))
    assert list(policy.teams) == ["no", "off", "y"]
    assert policy.open_team == "no"


BUDGETS = """
budgets:
  - { name: company, credits: 50000, per: month }
  - { name: search, match: { team: a }, credits: "3000.5", per: day, timezone: Asia/Seoul, warn_at: [0.5, 0.95] }
  - { name: each-key, match: { team: a }, each: key, credits: 50, within: 24h, amounts: { ci: 200 }, shadow: true }
  - { name: opus, match: { model: "*-opus-*" }, each: team, credits: 0.1, per: week, instead_of: company }
teams: { a: { models: ["gpt-*"], deny_models: ["*-opus-*"], suites: [docs], tools: { deny: ["docs.delete_*"] }, chatbots: [7] } }
prices:
  - { models: "gpt-4o*", input_per_million: 2.5, output_per_million: 10, cached_input_per_million: 1.25 }
  - { models: "gpt-4o-mini", input_per_million: 0.15, output_per_million: "0.6", output_tokens_max: 16384 }
  - { chatbots: "*", per_call: 5 }
  - { suites: "*", per_call: 0 }
unpriced: { hold: 100 }
estimate: strict
aliases: { fast: gpt-4o-mini }
"""


def test_budgets_prices_and_permissions_are_read_exactly(tmp_path):
    policy = load_policies(a_folder(tmp_path, a=BUDGETS))
    company, search, each_key, opus = policy.budgets
    assert (company.amount, company.window) == (50_000 * 10**8, Calendar(Per.MONTH))
    assert (search.amount, search.window.zone, search.warn_at) == (300_050_000_000, ZoneInfo("Asia/Seoul"), (0.5, 0.95))
    assert (each_key.each, each_key.window, each_key.amounts) == (Each.KEY, Sliding(86_400.0), {"ci": 200 * 10**8})
    assert (opus.amount, opus.match.model, opus.instead_of) == (10_000_000, "*-opus-*", "company")
    assert opus.source.endswith("a.yaml:6:5")
    assert policy.prices.find("models", "GPT-4O-mini").output_per_million == 60_000_000
    assert policy.prices.find("models", "gpt-4o-2024").cached_input_per_million == 125_000_000
    assert policy.prices.find("models", "claude") is None
    assert policy.prices.find("chatbots", "7").per_call == 5 * 10**8
    assert (policy.unpriced_hold, policy.estimate, policy.aliases) == (
        100 * 10**8,
        Estimate.STRICT,
        {"fast": "gpt-4o-mini"},
    )
    team = policy.teams["a"]
    assert team.may_use_model("GPT-4o")
    assert not team.may_use_model("gpt-opus-1")
    assert not team.may_use_model("claude")
    assert not team.may_use_model(None)
    assert team.may_use_suite("docs")
    assert not team.may_use_suite("calc")
    assert team.may_use_tool("docs", "search")
    assert not team.may_use_tool("docs", "delete_page")
    assert team.may_use_chatbot("7")
    assert not team.may_use_chatbot("8")


# fmt: off
WRONG_LIMITS = [
    ("budgets: [{ name: a, credits: 5 }]",                                    "budgets.0: say either per"),
    ("budgets: [{ name: a, credits: 5, per: day, within: 1h }]",              "budgets.0: say either per"),
    ("budgets: [{ name: a, credits: -5, per: day }]",                         "budgets.0.credits: "),
    ("budgets: [{ name: a, credits: lots, per: day }]",                       "budgets.0.credits: "),
    ("budgets: [{ name: a, credits: true, per: day }]",                       "budgets.0.credits: expected an amount"),
    ("budgets: [{ name: a, credits: 5, per: fortnight }]",                    "budgets.0.per: 'fortnight' is not one of"),
    ("budgets: [{ name: a, credits: 5, per: day, timezone: Mars/Olympus }]",  "budgets.0.timezone: 'Mars/Olympus' is no time zone"),
    ("budgets: [{ name: a, credits: 5, per: day, timezone: 12:30 }]",         "budgets.0.timezone: "),
    ("budgets: [{ name: a, credits: 5, per: day, match: { taem: b } }]",      "budgets.0.match.taem: is not known"),
    ("budgets: [{ name: a, credits: 5, per: day, match: { team: nobody } }]", "there is no team 'nobody'"),
    ("budgets: [{ name: a, credits: 5, per: day, warn_at: [1.5] }]",          "budgets.0.warn_at.0: "),
    ("budgets: [{ name: a, credits: 5, per: day, instead_of: b }]",           "there is no other budget 'b'"),
    ("budgets: [{ name: a, credits: 5, per: day, amounts: { x: 1 } }]",       "amounts goes with each"),
    ("budgets: [{ name: a, credits: 5, per: day }, { name: a, credits: 6, per: day }]", "the budget 'a' stands at"),
    ("prices: [{ models: a }]",                                               "prices.0: says no price"),
    ("prices: [{ per_call: 1 }]",                                             "prices.0: name exactly one of"),
    ("prices: [{ models: a, suites: b, per_call: 1 }]",                       "prices.0: name exactly one of"),
    ("prices: [{ models: a, per_call: 1 }, { models: A, per_call: 2 }]",      "'A' is priced at"),
    ("prices: [{ models: a, input_per_milion: 1 }]",                          "did you mean input_per_million?"),
    ("unpriced: ignore",                                                      "unpriced"),
    ("teams: { a: { models: gpt } }",                                         "teams.a.models: expected a list"),
    ("teams: { a: { tools: { alow: [] } } }",                                 "teams.a.tools.alow: is not known"),
]
# fmt: on


@pytest.mark.parametrize(("text", "problem"), WRONG_LIMITS)
def test_a_limit_that_is_wrong_is_said_with_its_place(tmp_path, text, problem):
    found = problems_of(tmp_path, a=text)
    assert any(problem in line and line.startswith("a.yaml:1:") for line in found), found


@pytest.mark.parametrize(
    ("written", "expires_s"),
    [
        ("2027-01-31", 1_801_353_600.0),
        ('"2027-01-31"', 1_801_353_600.0),
        ("2027-01-31T09:00:00+09:00", 1_801_353_600.0),
        ("2027-01-31 00:00:00", 1_801_353_600.0),
    ],
)
def test_a_key_of_a_file_expires_at_an_instant(tmp_path, written, expires_s):
    text = f'teams: {{ search: {{ keys: [{{ id: ci, sha256: "{CI}", expires: {written} }}] }} }}'
    policy = load_policies(a_folder(tmp_path, a=text))
    assert policy.team_of_key("sk-ci", expires_s - 1) is not None
    assert policy.team_of_key("sk-ci", expires_s) is None


@pytest.mark.parametrize("written", ["soon", "90", '"2027-13-01"', "[]"])
def test_what_is_no_instant_is_a_problem(tmp_path, written):
    text = f'teams: {{ search: {{ keys: [{{ id: ci, sha256: "{CI}", expires: {written} }}] }} }}'
    with pytest.raises(PolicyProblems, match=r"a\.yaml:1:\d+: teams\.search\.keys\.0\.expires: .* instant, such as"):
        load_policies(a_folder(tmp_path, a=text))


DAY = "write a day or an instant, such as 2027-01-31 or 2027-01-31T18:00:00+09:00"


def test_a_date_that_no_calendar_has_is_told_with_its_place_and_the_rest(tmp_path):
    key = f'{{ id: ci, sha256: "{CI}", expires: 2027-02-30 }}'
    assert problems_of(tmp_path, a=f"teams: {{ search: {{ keys: [{key}] }} }}\nerors: hybrid") == [
        "a.yaml:1:113: teams.search.keys.0.expires: '2027-02-30' is no instant (day is out of range for month); " + DAY,
        "a.yaml:2:1: erors: is not known; did you mean errors?",
    ]


RATES = """
teams: { batch: {} }
rates:
  - { name: batch-calm, match: { team: batch }, in_flight: 4 }
  - { name: batch-tokens, match: { team: batch }, tokens: 200000, within: 60s, each: key, amounts: { ci: 5 }, shadow: true }
  - { name: paid, match: { spends: true, route: chat }, requests: 10, within: 1m, excess: warn, instead_of: member }
"""


def test_rates_are_read_beside_those_of_the_gateway(tmp_path):
    calm, tokens, paid, *built_in = load_policies(a_folder(tmp_path, a=RATES)).rates
    assert (calm.counts, calm.amount, calm.window_s, calm.match.facts.team) == (Counts.IN_FLIGHT, 4, 0.0, "batch")
    assert (tokens.counts, tokens.window_s, tokens.amounts, tokens.shadow) == (Counts.TOKENS, 60.0, {"ci": 5}, True)
    assert (paid.match.spends, paid.excess, paid.instead_of) == (True, Excess.WARN, "member")
    assert paid.source.endswith("a.yaml:6:5")
    assert {(rate.name, rate.amount, rate.window_s) for rate in built_in} == {
        ("member", 120, 60.0),
        ("chatbot", 30, 60.0),
        ("reservations", 300, 60.0),
        ("tool-minute", 30, 60.0),
        ("tool-day", 200, 86_400.0),
        ("suite-minute", 60, 60.0),
        ("suite-day", 300, 86_400.0),
        ("org-day", 1000, 86_400.0),
    }


def test_the_gateways_limits_can_be_replaced_and_a_copy_of_them_is_not_read_twice(tmp_path):
    own = "gateway_limits: own\nrates: [{ name: member, requests: 5, within: 60s }]"
    (rate,) = load_policies(a_folder(tmp_path, a=own)).rates
    assert rate.amount == 5
    (tmp_path / "gateway.yaml").write_bytes(GATEWAY.read_bytes())
    assert "the rate 'member' stands at a.yaml:2:11 already" in problems_of(tmp_path)[0]
    (tmp_path / "a.yaml").write_text("errors: hybrid")
    assert load_policies(tmp_path).rates == gateway_rates()
    (tmp_path / "gateway.yaml").write_text(GATEWAY.read_text() + "# changed\n")
    assert "is one of the gateway's own (gateway.yaml (built in):12:5)" in problems_of(tmp_path)[0]


# fmt: off
WRONG_RATES = [
    ("{ name: a, requests: 1 }",                                    "rates.0: requests and tokens are counted within"),
    ("{ name: a, in_flight: 1, within: 1s }",                       "rates.0: requests and tokens are counted within"),
    ("{ name: a, requests: 1, tokens: 1, within: 1s }",             "rates.0: say exactly one of"),
    ("{ name: a, within: 1s }",                                     "rates.0: say exactly one of"),
    ("{ name: a, requests: 1.5, within: 1s }",                      "rates.0.requests: "),
    ("{ name: a, requests: 1, within: 1s, each: mebmer }",          "rates.0.each: 'mebmer' is not one of"),
    ("{ name: a, requests: 1, within: 1s, match: { metod: x } }",   "rates.0.match.metod: is not known; did you mean method?"),
    ("{ name: a, requests: 1, within: 1s, match: { team: x } }",    "rates.a.match.team: there is no team 'x'"),
    ("{ name: a, requests: 1, within: 1s, instead_of: b }",         "rates.a.instead_of: there is no other rate 'b'"),
    ("{ name: a, requests: 1, within: 1s, amounts: { x: 1 } }",     "rates.0: amounts goes with each"),
    ("{ name: a, requests: 1, within: 1s, excess: hope }",          "rates.0.excess: 'hope' is not one of"),
]
# fmt: on


@pytest.mark.parametrize(("text", "problem"), WRONG_RATES)
def test_a_rate_that_is_wrong_is_said_with_its_place(tmp_path, text, problem):
    found = problems_of(tmp_path, a=f"rates: [{text}]")
    assert any(problem in line and line.startswith("a.yaml:1:") for line in found), found


@pytest.mark.parametrize("word", ["excess: wait", "each: member"])
def test_a_budget_does_not_wait_and_knows_no_members(tmp_path, word):
    (problem,) = problems_of(tmp_path, a=f"budgets: [{{ name: a, credits: 1, per: day, {word} }}]")
    assert problem.startswith("a.yaml:1:11: budgets.0: a budget ")
