import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

from proxy.cli.main import run_command
from proxy.config.policyfile import load_policies
from proxy.core.policy import DEFAULT_POLICY

ROOT = Path(__file__).parents[2]
# What is looked for must not stand here as it is looked for.
INDEX_HOSTS = re.compile("|".join(rf"\b{name}\.(?:{tld})\b" for name, tld in (
    ("py" + "pi", "org|io"), ("python" + "hosted", "org"), ("npm" + "js", "com|org"), ("deb" + r"ian", "org"),
    ("crates", "io"), ("golang" , "org"),
)))  # fmt: skip
MACHINE_PATHS = re.compile(
    r"(?<![\w.$}])/(?:" + "|".join(("wo" + "rk", "ro" + "ot", "ho" + "me/(?!ann)", "Us" + "ers/(?!ann)")) + r")\b/?"
)


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    assert listed.returncode == 0, "what is tracked can only be read with git, in a checkout"
    return [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]


def texts():
    for path in tracked():
        if path.is_file():
            try:
                yield path.relative_to(ROOT), path.read_text("utf-8")
            except UnicodeDecodeError:
                continue


def test_no_file_names_a_package_index():
    """A lock with addresses in it would install from them, whatever the machine is set up for."""
    found = [f"{path}: {match[0]}" for path, text in texts() for match in INDEX_HOSTS.finditer(text)]
    assert not found
    for lock in ROOT.glob("constraints*.txt"):
        assert not re.search(r"^\s*-(?!-hash=)|://", lock.read_text(), re.MULTILINE), lock.name


def test_no_file_names_a_path_of_one_machine():
    found = [f"{path}: {match[0]}" for path, text in texts() for match in MACHINE_PATHS.finditer(text)]
    assert not found


def test_locks_hold_a_hash_for_every_version():
    for lock in ROOT.glob("constraints*.txt"):
        entries = re.split(r"\n(?=\w)", lock.read_text())[1:]
        assert entries
        for entry in entries:
            assert re.match(r"[a-z0-9-]+==\S+.*( \\\n    --hash=sha256:[0-9a-f]{64})+\n?$", entry, re.DOTALL), entry[
                :60
            ]


def test_the_lock_holds_every_dependency_of_the_project():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in (*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()):
        wanted += extra
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    names = {re.match(r"[\w.-]+", line)[0].lower().replace(".", "-").replace("_", "-") for line in wanted}
    assert not names - locked


def test_the_policies_that_are_shipped_are_right_and_change_nothing(capsys):
    assert run_command(["check", str(ROOT / "policies")]) == 0
    capsys.readouterr()
    assert load_policies(ROOT / "policies") == load_policies(ROOT / "nowhere")
    assert replace(load_policies(ROOT / "policies"), rates=()) == DEFAULT_POLICY


def test_the_gateways_limits_lie_among_the_policies_for_reading():
    assert (ROOT / "policies" / "gateway.yaml").read_bytes() == (ROOT / "proxy" / "gateway.yaml").read_bytes()


def test_modules_are_small_nouns():
    """A module called utils is where things are put that nobody looked for a place for."""
    for path in (ROOT / "proxy").rglob("*.py"):
        assert not re.search(r"util|helper|common|manager|misc|^base", path.stem), path


def test_every_module_says_what_it_knows():
    import ast

    for path in (ROOT / "proxy").rglob("*.py"):
        text = path.read_text("utf-8")
        assert not text.strip() or ast.get_docstring(ast.parse(text)), path
