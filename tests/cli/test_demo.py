import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

DEMO = [sys.executable, "-m", "proxy", "demo"]


def demo(*arguments, **options):
    return subprocess.run([*DEMO, *arguments], capture_output=True, text=True, check=False, timeout=60, **options)


def greeting(process):
    """The lines up to the last one of the greeting."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "Stop with Ctrl-C.\n":
            return "".join(lines)
    raise AssertionError("".join(lines) + process.stderr.read())


def test_the_demo_proves_itself_by_a_first_call():
    done = demo("--once", "--port", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"Its first answer: '.+'\n", done.stdout)


def test_what_it_says_to_paste_works():
    """The curl line as it is printed, in a shell."""
    with subprocess.Popen([*DEMO, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        shown = greeting(process)
        url = re.search(r"running at (\S+), with its page", shown)[1]
        body = re.search(r"-d '(.+)'", shown)[1]
        request = Request(f"{url}/v1/chat/completions", body.encode(), {"content-type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            assert answer.read().endswith(b"data: [DONE]\n\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == "Stopping.\n"
        assert process.stderr.read() == ""


def test_settings_and_policies_of_the_folder_have_no_part_in_it(tmp_path):
    (tmp_path / "sluicegate.yaml").write_text("nonsense: [")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text("nonsense: [")
    environ = {**os.environ, "PYTHONPATH": str(Path.cwd()), "SLUICEGATE_AUTH": "keys", "SLUICEGATE_NONSENSE": "1"}
    assert demo("--once", "--port", "0", cwd=tmp_path, env=environ).returncode == 0


def test_a_port_that_was_asked_for_and_is_taken_is_said_so():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = demo("--once", "--port", str(port))
    assert done.returncode == 1
    assert f"port {port} or {port + 1} is taken; choose another --port" in done.stderr


def test_traffic_is_answered_on_every_route():
    """No call of the sample traffic is refused: each refusal would be a line on standard error."""
    from proxy.cli.samples import CALLS

    command = [*DEMO, "--port", "0", "--traffic", "--every", "0", "--verbose"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # One line for the proof, and for each call one besides one of another team's; all of one's own are answered.
        lines = [process.stderr.readline() for _ in range(2 * len(CALLS) + 1)]
        process.send_signal(signal.SIGINT)
        # Read on meanwhile: where nobody does, a pipe that is full would keep it from ending.
        process.communicate(timeout=60)
        assert process.returncode == 0
    own = [line for line in lines if '"team":"you"' in line]
    assert len(own) >= len(CALLS), lines
    assert all('"status":200' in line for line in own), lines
