"""The table and the commands of README.md's section on clients."""

import json
import re
import shlex

import pytest

from tests.clients.roster import JS
from tests.clients.turns import QUESTION
from tests.journeys.programs import ROOT, command

SAID = [{"role": "user", "content": QUESTION}]


@pytest.mark.parametrize(
    ("sdk", "case", "body"),
    [
        ("openai_sdk", "chat", {"model": "gpt-4o-mini", "messages": SAID}),
        ("anthropic_sdk", "message", {"model": "claude-opus-x", "max_tokens": 64, "messages": SAID}),
    ],
)
def test_a_shell_that_read_env_sends_sdks_here(person, needs, gateway, sdk, case, body):
    needs("openai-js" if sdk == "openai_sdk" else "anthropic-js")
    env = shlex.join(command("env", "--url", person.url))
    ask = shlex.join(["node", str(JS / f"{sdk}.mjs"), case, json.dumps({"body": body})])
    done = person.starts("sh", "-c", f'eval "$({env})" && {ask}')
    assert "value" in json.loads(done.out), done.out
    assert [seen.status for seen in gateway.seen()] == [200]


def test_every_block_of_the_section_is_followed_by_a_test():
    """A recipe that nothing runs is a guess."""
    page = (ROOT / "README.md").read_text("utf-8")
    section = page.partition("\n## Clients\n")[2].partition("\n## ")[0]
    files = re.findall(r"in `([^`]+)`[^\n]*:\n\n```", section)
    assert len(files) == section.count("```") / 2 > 0
    tests = "\n".join(path.read_text("utf-8") for path in JS.parent.glob("test_*.py"))
    assert not [file for file in files if f'follow("{file}"' not in tests]
