import json

import pytest

from proxy.cli.main import run_command


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys, *arguments, code):
    assert run_command(["check", *arguments]) == code
    return capsys.readouterr().out


def test_without_files_everything_is_fine(capsys):
    assert shown(capsys, code=0) == "note: teams: default; virtual keys in files: 0\nSettings and policies are fine.\n"


def test_problems_of_settings_and_policies_come_together(capsys, folder):
    (folder / "sluicegate.yaml").write_text("drian: 3s\n")
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text("heartbaet: 3s\n")
    assert shown(capsys, "rules", code=1).splitlines() == [
        f"{folder}/sluicegate.yaml:1:1: drian: is not a setting; did you mean drain?",
        "rules/a.yaml:1:1: heartbaet: is not known; did you mean heartbeat?",
        "2 problems found.",
    ]


def test_the_policies_of_the_settings_are_judged(capsys, folder):
    (folder / "sluicegate.yaml").write_text("policies: rules\n")
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text("expires_aftr: 2h\n")
    assert shown(capsys, code=1).startswith("rules/a.yaml:1:1: expires_aftr: is not known; did you mean expires_after?")


def test_what_becomes_of_an_alias_of_an_alias_is_noted(capsys, folder):
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text("aliases: { fast: good, good: gpt-4o }\n")
    assert (
        "note: rules/a.yaml:1:12: aliases.fast: good is an alias, too; aliases are applied once, "
        "so the gateway is asked for good itself\n"
    ) in shown(capsys, "rules", code=0)


PRICED = "{{ models: {}, {} }}"
TOKENS = "input_per_million: 1, output_per_million: 2"

# fmt: off
NOTED = {
    # what it is                   the file                                                              what is noted, after its place
    "a call of a chat model":      ("prices: [" + PRICED.format("gem-3-flash", "per_call: 3") + "]",     ["1:10: prices: per_call of gem-3-flash is what music costs; no other call of a model is priced by it"]),
    "a call of many":              ("prices: [" + PRICED.format("gem-*", "per_call: 3") + "]",           ["1:10: prices: per_call of gem-* is what music costs; no other call of a model is priced by it"]),
    "a call beside tokens":        ("prices: [" + PRICED.format("gem-3", "per_call: 3, " + TOKENS) + "]", ["1:10: prices: per_call of gem-3 is what music costs; no other call of a model is priced by it"]),
    "all units of all":            ("prices: [" + PRICED.format('"*"', "per_image: 1, per_call: 3, " + TOKENS) + "]", []),
    "nothing costs anything":      ("prices: [" + PRICED.format("gem-3", "per_call: 0") + "]",           []),
    "what is priced by the call":  ('prices: [{ suites: "*", per_call: 1 }, { chatbots: 7, per_call: 1 }]', []),
    "tokens, images, videos":      ("prices: [" + ", ".join([PRICED.format("a", TOKENS), PRICED.format("b", "per_image: 1"), PRICED.format("c", "per_video: 1")]) + "]", []),
    "the price of an alias":       ("aliases: { fast: gpt-4o }\nprices: [" + PRICED.format("fast", TOKENS) + "]", ["2:10: prices: fast is an alias, and calls are priced as what it stands for, gpt-4o"]),
    "of what an alias stands for": ("aliases: { fast: good, good: gpt-4o }\nprices: [" + PRICED.format("good", TOKENS) + "]", ["1:12: aliases.fast: good is an alias, too; aliases are applied once, so the gateway is asked for good itself"]),
}
# fmt: on


@pytest.mark.parametrize("name", NOTED)
def test_what_is_sound_and_may_not_be_meant_is_noted(capsys, folder, name):
    text, notes = NOTED[name]
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text(f"{text}\n")
    assert shown(capsys, "rules", code=0).splitlines() == [
        "note: teams: default; virtual keys in files: 0",
        *(f"note: rules/a.yaml:{note}" for note in notes),
        "Settings and policies are fine.",
    ]


# fmt: off
TEAMS = {
    # what it is                     models of the team                                           what is noted
    "an alias alone":                ("models: [fast]",                                            "models: fast is an alias, and the team may not use what it stands for, gpt-4o-mini"),
    "with what it stands for":       ("models: [fast, gpt-4o-mini]",                               None),
    "with a pattern of that":        ("models: [fast, gpt-*]",                                     None),
    "a denied alias":                ("deny_models: [fast]",                                       "deny_models: fast is an alias, and the team may use what it stands for, gpt-4o-mini"),
    "denied with what it is":        ("deny_models: [fast, gpt-4o-mini]",                          None),
    "an alias of a chatbot":         ("models: [bot]",                                             None),
}
# fmt: on


@pytest.mark.parametrize("name", TEAMS)
def test_a_list_of_models_that_names_an_alias_is_noted_where_it_does_not_say_what_it_seems_to(capsys, folder, name):
    said, note = TEAMS[name]
    (folder / "rules").mkdir()
    aliases = 'aliases: { fast: gpt-4o-mini, bot: "chatbot:7" }'
    (folder / "rules" / "a.yaml").write_text(f"{aliases}\nteams: {{ red: {{ {said} }} }}\n")
    noted = [] if note is None else [f"note: rules/a.yaml:2:10: teams.red.{note}"]
    assert shown(capsys, "rules", code=0).splitlines()[1:-1] == noted


def test_a_folder_that_is_not_there_is_a_problem(capsys):
    assert "polices is not a folder" in shown(capsys, "polices", code=1)


def test_json_says_the_same(capsys, folder):
    (folder / "sluicegate.yaml").write_text("drian: 3s\n")
    assert json.loads(shown(capsys, "--json", code=1)) == {
        "ok": False,
        "problems": [
            {
                "where": f"{folder}/sluicegate.yaml:1:1",
                "what": "drian: is not a setting",
                "do": "did you mean drain?",
            }
        ],
        "notes": [],
    }


def test_settings_come_from_flags_too(capsys):
    assert "--auth: auth open lets everybody" in shown(capsys, "--auth", "open", "--listen", "0.0.0.0:1", code=1)


def test_callers_who_show_no_key_need_a_team(capsys, folder):
    (folder / "rules").mkdir()
    (folder / "rules" / "a.yaml").write_text("teams: { red: {} }\n")
    assert "auth: callers without a key have no team" in shown(capsys, "rules", "--auth", "open", code=1)
    (folder / "rules" / "a.yaml").write_text("teams: { red: {} }\nopen_team: red\n")
    assert "fine" in shown(capsys, "rules", "--auth", "open", code=0)
