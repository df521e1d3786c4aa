from dataclasses import replace
from zoneinfo import ZoneInfo

from proxy.core.deterministic import CacheRule
from proxy.core.limits import Budget, Each, Match
from proxy.core.listing import differences, listing, said_of
from proxy.core.policy import DEFAULT_POLICY, KeyRef, Policy, Team
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.windows import Calendar, Per, Sliding
from proxy.units import credits_of

MONTH = Budget(
    "month", credits_of(50), Calendar(Per.MONTH, ZoneInfo("Asia/Seoul")), Match(team="red"), source="a.yaml:9:5"
)
POLICY = Policy(
    teams={"red": Team("red", (KeyRef("ci", bytes(32)),), models=("gpt-*",))},
    budgets=(MONTH, Budget("hour", credits_of("0.5"), Sliding(3600), each=Each.KEY, amounts={"ci": credits_of(2)})),
    prices=PriceTable((Rule("models", "gpt-*", Price(credits_of("2.5"), source="a.yaml:3:5")),)),
    aliases={"fast": "gpt-4o-mini"},
    sources={"team red": "a.yaml:1:3", "alias fast": "a.yaml:7:12"},
)


def of(kind, rules):
    return [said for said in rules if said.kind == kind]


def test_each_rule_is_said_with_its_place_and_amounts_in_credits():
    rules = listing(POLICY)
    (team,) = of("team", rules)
    assert (team.name, team.source) == ("red", "a.yaml:1:3")
    assert team.words == {"keys": [{"id": "ci", "sha256": "000000000000…"}], "models": ["gpt-*"]}
    month, hour = of("budget", rules)
    assert month.words == {"amount": "50", "window": "per month, Asia/Seoul", "match": {"team": "red"}}
    assert hour.words == {"amount": "0.5", "window": "within 3600 s", "each": "key", "amounts": {"ci": "2"}}
    assert of("price", rules)[0].words == {"input_per_million": "2.5"}
    assert [(said.name, said.words, said.source) for said in of("alias", rules)] == [
        ("fast", {"stands_for": "gpt-4o-mini"}, "a.yaml:7:12")
    ]


def test_a_rule_survives_json():
    assert tuple(said_of(said.plain) for said in listing(POLICY)) == listing(POLICY)


def test_the_place_of_a_rule_is_no_difference():
    moved = replace(POLICY, budgets=(replace(MONTH, source="b.yaml:1:1"), POLICY.budgets[1]))
    assert differences(listing(POLICY), listing(moved)) == ()


def test_what_comes_goes_and_changes_is_told_apart():
    after = replace(
        POLICY,
        budgets=(replace(MONTH, amount=credits_of(60)),),
        aliases={"good": "x"},
        heartbeat_s=15.0,
    )
    found = differences(listing(POLICY), listing(after))
    told = [(one.rule.kind, one.rule.name, one.before is None, one.after is None, one.changed) for one in found]
    assert ("budget", "month", False, False, {"amount": ("50", "60")}) in told
    assert ("switch", "heartbeat", False, False, {"is": (None, 15.0)}) in told
    assert [one.rule.name for one in found if one.after is None] == ["hour", "fast"]
    assert [one.rule.name for one in found if one.before is None] == ["good"]
    assert len(found) == 5


def test_every_switch_is_said_where_no_file_says_anything():
    names = {said.name for said in of("switch", listing(DEFAULT_POLICY))}
    assert {"open_team", "errors", "heartbeat", "unpriced", "estimate"} <= names


def test_counts_are_no_amounts():
    price = Price(credits_of(1), output_tokens_max=16_384, part_tokens=100)
    (said,) = of("price", listing(replace(POLICY, prices=PriceTable((Rule("models", "*", price),)))))
    assert said.words == {"input_per_million": "1", "output_tokens_max": 16_384, "part_tokens": 100}
    assert ("unpriced", {"is": "100"}) in [
        (said.name, said.words) for said in of("switch", listing(replace(POLICY, unpriced_hold=credits_of(100))))
    ]


def test_rules_without_a_name_are_known_by_their_order():
    rules = (CacheRule(Match(route="chat"), deterministic=True, ttl_s=60.0, source="a.yaml:4:5"), CacheRule(ttl_s=5.0))
    first, second = of("cache", listing(replace(POLICY, cache=rules)))
    assert (first.name, first.words, first.source) == (
        "rule 1",
        {"match": {"route": "chat"}, "deterministic": True, "ttl_s": 60.0},
        "a.yaml:4:5",
    )
    assert (second.name, second.words) == ("rule 2", {"ttl_s": 5.0})
