"""What people type: curl, with what it sends by itself."""

import json
import os
import shutil
import subprocess

import pytest

ASK = '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}]}'
STREAM = ASK[:-1] + ',"stream":true}'
CONTINUE_BYTES = 2 * 1024 * 1024
"""curl asks first (`Expect: 100-continue`) before it sends a body of more than 1 MiB."""


@pytest.fixture
def curl(home):
    program = shutil.which("curl")
    assert program, "curl is not installed"

    def run(*arguments: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
        return subprocess.run(
            [program, "-sS", "--max-time", "60", *arguments], input=data, capture_output=True, check=False, env=environ
        )

    return run


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/", "/v1/gateway/chat/completions"])
def test_data_without_a_content_type_is_json_all_the_same(curl, url, path):
    done = curl("-d", ASK, url + path)
    assert json.loads(done.stdout)["choices"]


def test_a_stream_comes_to_its_end(curl, url):
    done = curl("-N", "-d", STREAM, f"{url}/v1/chat/completions")
    assert done.returncode == 0
    assert done.stdout.endswith(b"data: [DONE]\n\n")


def test_a_large_body_is_asked_for_and_taken(curl, url, gateway):
    body = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "x" * CONTINUE_BYTES}]})
    done = curl(
        "-v", "-H", "Expect: 100-continue", "--data-binary", "@-", f"{url}/v1/chat/completions", data=body.encode()
    )
    assert b"< HTTP/1.1 100 Continue" in done.stderr
    assert json.loads(done.stdout)["choices"]
    (seen,) = gateway.seen()
    assert "expect" not in seen.headers


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(curl, url, gateway):
    done = curl(
        "-v", "-H", "Expect: 100-continue", "--data-binary", "@-", f"{url}/v1/chat/completions", data=b" " * 27_000_000
    )
    assert b"100 Continue" not in done.stderr
    assert json.loads(done.stdout)["error"]["message"] == "Request body too large. Maximum size is 25MB."
    assert not gateway.seen()


def test_a_sign_of_life_needs_nothing(curl, url, gateway):
    """Coding agents ask for HEAD / before anything else."""
    assert curl("-I", url).stdout.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(curl(url + "/").stdout)["service"] == "sluicegate"
    assert not gateway.seen()


def test_options_are_told(curl, url, gateway):
    done = curl("-i", "-X", "OPTIONS", f"{url}/v1/chat/completions")
    assert done.stdout.startswith(b"HTTP/1.1 204 No Content\r\n")
    assert b"Allow: POST, OPTIONS\r\n" in done.stdout
    assert b"access-control" not in done.stdout.lower()
    assert not gateway.seen()


@pytest.mark.parametrize(
    "path", ["/v1/embeddings", "/v1/responses/input_tokens", "/v1/files", "/.well-known/oauth-protected-resource"]
)
def test_a_path_nobody_knows_is_told_so_in_json(curl, url, gateway, path):
    done = curl("-w", "%{http_code}", "-d", "{}", url + path)
    assert done.stdout.endswith(b"404")
    assert json.loads(done.stdout[:-3])["error"]["reason"] == "unknown_route"
    assert not gateway.seen()


def test_a_websocket_is_refused_so_that_its_client_falls_back(curl, url, gateway):
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    lines = [part for line in upgrade for part in ("-H", line)]
    done = curl("-i", *lines, f"{url}/v1/responses")
    assert done.stdout.startswith(b"HTTP/1.1 426 ")
    assert not gateway.seen()
