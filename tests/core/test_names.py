"""Which spellings are one name, and who has to care."""

import pytest

from proxy.core.facts import Facts
from proxy.core.limits import Budget, Counts, Draw, Each, Match, Rate
from proxy.core.names import NAME_MAX, folded, same
from proxy.core.prices import Price, PriceTable, Rule
from proxy.core.windows import Calendar, Per
from proxy.units import credits_of

# fmt: off
SPELT = (
    "gpt-4o", "GPT-4o", " gpt-4o", "gpt-4o ", "gpt-4o\t", "gpt-4o\n", "gpt- 4o", "gpt-4o\u00a0", "gpt-4o\u3000",
    "gpt-4o\u200b", "\ufeffgpt-4o", "gpt\u00ad-4o", "gpt-4o\u2060", "gpt-4o\u200d", "gpt-4o\u202e", "gpt-4o\x00",
    "gpt-4o\ufe0f", "gpt-4o\U000e0100", "gpt-4o\u034f", "gpt-4o\u3164", "gpt-4o\u115f", "gpt-4o\u2800", "gpt-4o\U000e0041",
    "\uff47\uff50\uff54-4o", "gpt\uff0d4o", "gpt-\u2074o", "gp\u200b\ufe0f t-4o",
)
# fmt: on

apart = pytest.mark.parametrize("spelt", SPELT, ids=ascii)


def named(name):
    """What a call is that names a model, a suite, a tool and a chatbot so."""
    return Facts("red", "k", "mcp", name, name, name, chatbot=name)


@apart
@pytest.mark.parametrize("each", [Each.MODEL, Each.SUITE, Each.TOOL])
def test_nobody_has_a_fresh_account_by_an_odd_spelling(each, spelt):
    written = "gpt-4o.gpt-4o" if each is Each.TOOL else "gpt-4o"
    budget = Budget("b", 5, Calendar(Per.DAY), each=each, amounts={written: 7})
    rate = Rate("r", Counts.REQUESTS, 5, 60.0, each=each, amounts={written: 7})
    ours, usual = named(spelt), named("gpt-4o")
    assert budget.group(ours) == budget.group(usual)
    assert rate.group(Draw(ours)) == rate.group(Draw(usual))
    assert budget.amount_for(budget.group(ours)) == 7
    assert rate.amount_for(rate.group(Draw(ours))) == 7


@apart
def test_amounts_that_are_oddly_written_are_of_the_name_all_the_same(spelt):
    budget = Budget("b", 5, Calendar(Per.DAY), each=Each.MODEL, amounts={spelt: 7})
    assert budget.amount_for(budget.group(named("gpt-4o"))) == 7


@apart
@pytest.mark.parametrize("match", [Match(model="gpt-4*"), Match(model="GPT-4o"), Match(suite="gpt-4o"), Match(chatbot="gpt-4o"),
                                   Match(tool="gpt-4o"), Match(tool="gpt-4o.gpt-*"), Match(suite="gpt-4o", tool="gpt-4o")],
                         ids=str)  # fmt: skip
def test_nobody_leaves_a_limit_by_an_odd_spelling(match, spelt):
    assert match.takes(named(spelt))
    assert not match.takes(named("gpt-5"))


def test_a_dot_that_is_read_as_one_makes_a_tool_no_other_suites():
    assert not Match(tool="calc.add").takes(Facts("red", "k", "mcp", suite="docs", tool="calc\uff0eadd"))


def test_a_pattern_with_a_blank_takes_what_is_spelt_like_it():
    assert Match(tool="read page").takes(Facts("red", "k", "mcp", suite="docs", tool="read page"))


@apart
def test_nobody_has_another_price_by_an_odd_spelling(spelt):
    cheap, dear = Price(per_call=credits_of(1)), Price(per_call=credits_of(9))
    for kind in ("models", "suites", "chatbots"):
        table = PriceTable((Rule(kind, "*", cheap), Rule(kind, "gpt-4o", dear)))
        assert table.find(kind, spelt) is dear


def test_other_names_stay_apart():
    for other in ("gpt-4", "gpt-4o-mini", "gpt_4o", "gpt-40", "g\u0440t-4o", ""):
        assert not same(other, "gpt-4o")
    assert not same("gpt-4o", None)


def test_what_a_mark_kept_apart_is_one_character():
    assert folded("e\u200b\u0301") == folded("\u00e9")


def test_the_plain_form_of_the_longest_name_is_bounded():
    assert len(folded("\ufdfa" * NAME_MAX)) <= 18 * NAME_MAX
