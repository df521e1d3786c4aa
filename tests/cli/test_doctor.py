import contextlib
import json
import socket
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from proxy.cli.main import run_command

KEY = "gk-canary-0123456789"


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICEGATE_UPSTREAM_KEY", KEY)
    monkeypatch.setenv("SLUICEGATE_LISTEN", "127.0.0.1:0")
    monkeypatch.setenv("SLUICEGATE_ADMIN_LISTEN", "127.0.0.1:0")
    monkeypatch.setenv("SLUICEGATE_DATA", str(tmp_path / "data"))


@contextlib.contextmanager
def a_gateway(status=200, body=b'{"object":"list","data":[]}', **headers):
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, dict(self.headers)))
            self.send_response_only(status)
            for name, value in {"Date": formatdate(usegmt=True), **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def findings(capsys, *arguments, code):
    assert run_command(["doctor", "--json", *arguments]) == code
    out = capsys.readouterr().out
    assert KEY not in out
    return {row["name"]: row for row in json.loads(out)}


def test_all_is_well_with_a_gateway_that_takes_the_key(capsys):
    with a_gateway() as (url, seen):
        found = findings(capsys, "--upstream", url, code=0)
    assert {name: row["state"] for name, row in found.items()} == {
        "settings": "note", "listen": "ok", "admin-listen": "ok", "data": "ok", "body limit": "ok",
        "dns": "ok", "connect": "ok", "edge": "ok", "key": "ok", "clock": "ok",
    }  # fmt: skip
    ((path, headers),) = seen
    assert path == "/v1/gateway/models/"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["User-Agent"].startswith("sluicegate/")


@pytest.mark.parametrize(
    ("answer", "name", "state", "says"),
    [
        ({"status": 401}, "key", "fail", "refuses the key ***789"),
        ({"status": 403, "body": b"error code: 1010"}, "edge", "fail", "edge blocks our User-Agent"),
        ({"status": 302, "Location": "/"}, "key", "fail", "a redirect, which is never followed"),
        ({"status": 404}, "key", "fail", "there is no gateway at that address"),
        ({"status": 503}, "key", "note", "answers 503"),
        ({"Date": formatdate(1e9, usegmt=True)}, "clock", "note", "s ahead of the gateway's"),
        ({"Date": formatdate(4e9, usegmt=True)}, "clock", "note", "s behind the gateway's"),
        ({"Date": "yesterday"}, "clock", "skip", "has no date"),
    ],
)
def test_what_the_gateway_answers_is_judged(capsys, answer, name, state, says):
    with a_gateway(**answer) as (url, _):
        found = findings(capsys, "--upstream", url, code=1 if state == "fail" else 0)
    assert found[name]["state"] == state
    assert says in found[name]["says"]


def test_callers_own_keys_are_not_judged(capsys, monkeypatch):
    monkeypatch.delenv("SLUICEGATE_UPSTREAM_KEY")
    with a_gateway(status=401) as (url, seen):
        found = findings(capsys, "--upstream", url, "--credential", "caller", code=0)
    assert found["key"]["state"] == "skip"
    assert "Authorization" not in seen[0][1]


def test_without_a_gateway_the_rest_is_looked_at_all_the_same(capsys):
    found = findings(capsys, code=0)
    assert found["gateway"]["state"] == "skip"
    assert found["listen"]["state"] == "ok"


def test_a_gateway_that_cannot_be_reached_is_said_so(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        # Bound and not listening: connections are refused for sure.
        found = findings(capsys, "--upstream", f"http://127.0.0.1:{taken.getsockname()[1]}", code=1)
    assert found["connect"]["says"].endswith("cannot be reached (Connection refused)")
    assert "key" not in found


def test_a_port_that_another_program_holds_is_a_fault(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = findings(capsys, "--listen", f"127.0.0.1:{taken.getsockname()[1]}", code=1)
    assert found["listen"]["do"] == "choose another --listen"


def test_a_port_where_a_proxy_answers_is_fine(capsys):
    with a_gateway() as (url, seen):
        found = findings(capsys, "--listen", url.removeprefix("http://"), code=0)
    assert found["listen"]["says"].startswith("a proxy answers on ")
    assert [path for path, _ in seen] == ["/-/health"]


def test_a_port_where_something_else_answers_is_a_fault(capsys):
    with a_gateway(status=404) as (url, _):
        found = findings(capsys, "--admin-listen", url.removeprefix("http://"), code=1)
    assert found["admin-listen"]["do"] == "choose another --admin-listen"


def test_a_data_folder_that_others_can_read_is_noted(capsys, tmp_path):
    (tmp_path / "data").mkdir(mode=0o755)
    assert findings(capsys, code=0)["data"]["do"] == f"chmod 700 {tmp_path / 'data'}"
    (tmp_path / "data").chmod(0o700)
    assert findings(capsys, code=0)["data"]["state"] == "ok"


def test_settings_that_are_wrong_are_the_first_finding(capsys):
    found = findings(capsys, "--drain", "soon", code=1)
    assert found["settings"]["says"].startswith("--drain: 'soon' is not a duration")


def test_a_person_reads_one_line_for_each(capsys):
    assert run_command(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok    settings      settings and policies are fine"
    assert lines[-1] == "skip  gateway       no --upstream is set, so nothing was sent; give --upstream"
