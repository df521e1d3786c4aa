import asyncio
import json

import pytest

from proxy.cli.main import run_command
from proxy.emulator.groups.accounts import access_token
from proxy.emulator.groups.service import running_groups


class Shell:
    """Runs `sluicegate groups` against a service, in a folder of its own."""

    def __init__(self, service, folder, capsys):
        self.service, self.folder, self.capsys = service, folder, capsys
        self.file, self.token = folder / "groups.yaml", folder / "token"
        self.token.write_text(access_token("master"))
        self.token.chmod(0o600)

    async def run(self, *arguments):
        """Exit code, standard output, standard error."""
        words = ["--file", str(self.file), "--tenant-url", self.service.url, "--tenant-token-file", str(self.token)]
        code = await asyncio.to_thread(run_command, ["groups", arguments[0], *words, *arguments[1:]])
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def edit(self, old, new):
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new, 1))


@pytest.fixture
async def shell(tmp_path, capsys):
    async with running_groups() as service:
        yield Shell(service, tmp_path, capsys)


async def test_what_was_pulled_is_no_difference(shell):
    assert await shell.run("pull") == (0, f"6 groups written to {shell.file}.\n", "")
    assert await shell.run("plan") == (0, "The service is as the file says.\n", "")


async def test_a_difference_exits_2_and_is_shown_and_applied(shell):
    await shell.run("pull")
    shell.edit("en_name: Computing", "en_name: Computer Science")
    code, out, _ = await shell.run("plan")
    assert code == 2
    assert "+ change “Computing” (3): en_name Computer Science" in out
    code, out, _ = await shell.run("apply")
    assert (code, out.splitlines()[-1]) == (0, "1 of 1 steps done.")
    assert (await shell.run("plan"))[0] == 0


async def test_what_takes_away_is_not_done_without_a_yes(shell):
    await shell.run("pull")
    shell.edit("id: 3", "id: 3\n    delete: true")
    code, out, err = await shell.run("apply")
    assert (code, "give --yes" in err, "nothing was done" in err) == (1, True, True)
    assert 3 in shell.service.tenant.groups
    assert (await shell.run("apply", "--yes"))[0] == 0
    assert 3 not in shell.service.tenant.groups
    code, out, _ = await shell.run("plan")
    assert (code, out.splitlines()) == (
        0,
        ["note: group 3 is gone already, or not delegated to this account", "The service is as the file says."],
    )


async def test_refusals_are_reported_and_the_rest_is_done(shell):
    await shell.run("pull")
    shell.edit("id: 4", "id: 4\n    delete: true")
    shell.edit("en_name: Office", "en_name: Main Office")
    code, out, _ = await shell.run("apply", "--yes")
    assert code == 1
    assert "failed: delete “Seoul” (4): 400" in out
    assert out.splitlines()[-1] == "1 of 2 steps done."
    assert shell.service.tenant.groups[6].en_name == "Main Office"


async def test_everything_is_told_as_json_too(shell):
    code, out, _ = await shell.run("pull", "--json")
    assert json.loads(out) == {"file": str(shell.file), "groups": 6}
    shell.edit("group_quota: 5000", "group_quota: 6000")
    shell.edit("id: 3", "id: 3\n    delete: true")
    code, out, _ = await shell.run("plan", "--json")
    plan = json.loads(out)
    assert (code, plan["different"], plan["untouched"]) == (2, True, [])
    assert plan["steps"] == [
        {
            "kind": "ChangeFields",
            "groups": [2],
            "says": "change “Engineering” (2): credit_quota 6000",
            "destructive": False,
        },
        {"kind": "Delete", "groups": [3], "says": "delete “Computing” (3)", "destructive": True},
    ]
    code, out, _ = await shell.run("apply", "--json", "--yes")
    assert (code, {name: json.loads(out)[name] for name in ("done", "failures", "untried", "stopped")}) == (
        0,
        {"done": 2, "failures": [], "untried": 0, "stopped": ""},
    )


async def test_a_file_is_not_written_over_without_a_yes(shell):
    await shell.run("pull")
    code, _, err = await shell.run("pull")
    assert (code, "--yes" in err) == (1, True)
    assert (await shell.run("pull", "--yes"))[0] == 0


async def test_what_is_left_out_of_a_pull_costs_no_requests(shell):
    words = ("visibility", "agents", "administrators", "members")
    await shell.run("pull", *(part for word in words for part in ("--without", word)))
    assert len(shell.service.journal) == 1
    assert (await shell.run("plan"))[0] == 0
    assert {path.name for path in shell.folder.iterdir()} == {"token", "groups.yaml"}


async def test_problems_of_the_file_are_told_with_their_places(shell):
    shell.file.write_text("groups:\n  - id: 2\n    quota: 3\n  - id: 77\n")
    code, _, err = await shell.run("plan")
    assert code == 1
    assert f"{shell.file}:3:5: groups.0.quota: is not known; did you mean group_quota?" in err
    assert len(shell.service.journal) == 0


async def test_a_refusal_of_the_service_says_what_to_do(shell):
    shell.token.write_text("wrong")
    code, _, err = await shell.run("pull")
    assert (code, "get a new one from the login" in err) == (1, True)


async def test_an_address_and_a_token_are_needed(shell, capsys):
    assert await asyncio.to_thread(run_command, ["groups", "plan"]) == 64
    assert "--tenant-url" in capsys.readouterr().err
    assert await asyncio.to_thread(run_command, ["groups", "plan", "--tenant-url", shell.service.url]) == 64
    assert "SLUICEGATE_TENANT_TOKEN" in capsys.readouterr().err


async def test_an_interrupted_apply_says_so_and_the_next_one_goes_on(shell):
    await shell.run("pull")
    for name in ("Default", "Computing", "Seoul", "Hydrology", "Office"):
        shell.edit(f"en_name: {name}", f"en_name: {name} 2")
    before = len(shell.service.journal)
    await shell.run("plan")
    shell.service.break_after(len(shell.service.journal) - before + 1)
    code, out, _ = await shell.run("apply")
    assert (code, out.splitlines()[-1]) == (1, "1 of 5 steps done.")
    assert "stopped, 1 steps not tried" in out
    assert "run it again" in out
    shell.service.outage = None
    code, out, _ = await shell.run("apply")
    assert (code, out.splitlines()[-1]) == (0, "4 of 4 steps done.")
    assert (await shell.run("plan"))[0] == 0


async def test_long_work_shows_how_far_it_is(shell):
    for number in range(94):
        shell.service.tenant.create(ko_name=f"{number} ko", en_name=f"{number}")
    code, _, err = await shell.run("pull", "--without", "agents")
    lines = err.splitlines()
    assert (code, lines[0], lines[-1]) == (0, "reading groups: 22 of 205", "reading groups: 205 of 205")
    assert len(lines) == 10
    assert (await shell.run("plan", "--json"))[2] == ""


async def test_names_from_elsewhere_cannot_steer_the_terminal(shell):
    await shell.run("pull")
    shell.service.tenant.groups[6].en_name = "Off\x1b[31mice\n+ delete everything"
    shell.edit("en_name: Office", "en_name: Office 2")
    code, out, _ = await shell.run("plan")
    assert code == 2
    assert "\x1b" not in out
    assert "\\u001b[31mice\\u000a+ delete everything" in out


async def test_a_token_file_that_others_can_read_is_told(shell):
    shell.token.chmod(0o644)
    assert "chmod 600" in (await shell.run("pull"))[2]
