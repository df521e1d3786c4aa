"""A budget is a ceiling through crashes: what a killed process had admitted stays spent in the next one."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import threading
from collections import Counter

import httpx2
import pytest

from tests.journeys.programs import command, environment, serving

IMAGE = {"model": "image-lab-small", "prompt": "x"}
RULES = """
budgets: [{ name: images, credits: 10000, within: 30d }]
prices: [{ models: "image-*", per_image: 10 }, { models: "video-*", per_video: 600 }, { models: "gpt-*", input_per_million: 250, output_per_million: 1000 }]
"""


@contextlib.contextmanager
def place(home, gateway, tmp_path):
    (tmp_path / "rules").mkdir(exist_ok=True)
    (tmp_path / "rules" / "a.yaml").write_text(RULES)
    arguments = ("--auth", "open", "--policies", str(tmp_path / "rules"), "--data", str(tmp_path / "data"))
    with serving(home, gateway.url, *arguments) as program:
        yield program


def limit(url):
    (row,) = httpx2.get(f"{url}/-/budget", timeout=60).raise_for_status().json()["limits"]
    return float(row["spent"]), float(row["held"])


def test_a_clean_restart_goes_on_where_it_stopped(home, gateway, tmp_path):
    with place(home, gateway, tmp_path) as program:
        url = program.url("listens on")
        for _ in range(3):
            assert httpx2.post(f"{url}/v1/images/generate", json=IMAGE, timeout=60).status_code == 200
        assert program.stop() == 0
    with place(home, gateway, tmp_path) as program:
        assert limit(program.url("listens on")) == (30.0, 0.0)
        assert program.stop() == 0


def test_kill_9_in_the_middle_of_traffic_never_makes_a_budget_larger(home, gateway, tmp_path):
    """Clients keep sending while the process is killed again and again; the gateway's own count is the witness."""
    for turn in range(4):
        with place(home, gateway, tmp_path) as program:
            url = program.url("listens on")
            sent = threading.Semaphore(0)

            def traffic(url=url, sent=sent):
                with contextlib.suppress(httpx2.HTTPError), httpx2.Client(timeout=60) as client:
                    while True:
                        client.post(f"{url}/v1/images/generate", json=IMAGE)
                        sent.release()

            threads = [threading.Thread(target=traffic) for _ in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(5 + 3 * turn):
                assert sent.acquire(timeout=60)
            os.kill(program.process.pid, signal.SIGKILL)
            program.process.wait()
            for thread in threads:
                thread.join()
    arrived = [seen for seen in gateway.seen() if seen.target.endswith("/images/generate/")]
    with place(home, gateway, tmp_path) as program:
        spent, held = limit(program.url("listens on"))
        assert spent + held >= 10 * len(arrived), "whatever reached the gateway is spent or held"
        assert spent + held <= 10 * (len(arrived) + 4 * 4), "and no more than what was under way besides"
        assert program.stop() == 0


def test_kill_9_never_sends_a_call_with_an_idempotency_key_twice(home, gateway, tmp_path):
    """Each key is tried, and tried again after the crash; the gateway counts by the request id of the caller."""
    for turn in range(4):
        with place(home, gateway, tmp_path) as program:
            url = program.url("listens on")
            tried, answered, done = [], {}, threading.Semaphore(0)

            def traffic(thread, url=url, tried=tried, answered=answered, done=done, turn=turn):
                with contextlib.suppress(httpx2.HTTPError), httpx2.Client(timeout=60) as client:
                    for number in itertools.count():
                        key = f"key-{turn}-{thread}-{number}"
                        tried.append(key)
                        answered[key] = once(client, url, key).content
                        done.release()

            threads = [threading.Thread(target=traffic, args=(thread,)) for thread in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(4 + 3 * turn):
                assert done.acquire(timeout=60)
            os.kill(program.process.pid, signal.SIGKILL)
            program.process.wait()
            for thread in threads:
                thread.join()
        with place(home, gateway, tmp_path) as program, httpx2.Client(timeout=60) as client:
            url = program.url("listens on")
            for key in tried:
                reply = once(client, url, key)
                if key in answered:
                    assert (reply.status_code, reply.content) == (200, answered[key])
                else:
                    assert reply.status_code == 200 or reply.json()["error"]["reason"] == "idempotency_lost"
            assert program.stop() == 0
    arrived = Counter(seen.headers["x-request-id"] for seen in gateway.seen() if seen.target.endswith("/generate/"))
    assert arrived
    assert set(arrived.values()) == {1}


def once(client, url, key):
    headers = {"Idempotency-Key": key, "X-Request-ID": key}
    return client.post(f"{url}/v1/images/generate", json=IMAGE, headers=headers)


def test_kill_9_leaves_a_video_with_its_team_and_its_hold(home, gateway, tmp_path):
    with place(home, gateway, tmp_path) as program:
        url = program.url("listens on")
        begun = httpx2.post(
            f"{url}/v1/video/generation", json={"model": "video-200", "prompt": "a heron"}, timeout=60
        ).json()
        assert limit(url) == (0.0, 600.0)
        os.kill(program.process.pid, signal.SIGKILL)
        program.process.wait()
    with place(home, gateway, tmp_path) as program:
        url = program.url("listens on")
        assert limit(url) == (0.0, 600.0)
        assert "holds_without_ending" not in program.logged
        # Without a model in the query: what the id was given for is known.
        while (reply := httpx2.get(f"{url}/v1/video/generation/{begun['operation_id']}", timeout=60)).json()[
            "status"
        ] != "completed":
            assert reply.status_code == 200
        assert limit(url) == (600.0, 0.0)
        assert program.stop() == 0


def test_a_second_process_on_the_same_books_is_told_so(home, gateway, tmp_path):
    with place(home, gateway, tmp_path) as program:
        with pytest.raises(AssertionError, match="in use by another process"), place(home, gateway, tmp_path):
            pass
        assert program.stop() == 0


def told(home, tmp_path, *arguments, code=0):
    """What a command says of the books, with no proxy running."""
    rest = ("--policies", str(tmp_path / "rules"), "--data", str(tmp_path / "data"), "--admin-listen", "127.0.0.1:1")
    done = subprocess.run(
        command(*arguments, *rest, "--json"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=home,
        env=environment(home),
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_what_a_crash_cut_off_is_in_doubt_until_somebody_says_what_it_cost(home, gateway, tmp_path):
    gateway.arm("hang", times=1)
    with place(home, gateway, tmp_path) as program:
        url = program.url("listens on")

        def call():
            with contextlib.suppress(httpx2.HTTPError):
                httpx2.post(f"{url}/v1/images/generate", json=IMAGE, timeout=60)

        caller = threading.Thread(target=call)
        caller.start()
        while not gateway.seen():
            assert caller.is_alive()
        os.kill(program.process.pid, signal.SIGKILL)
        program.process.wait()
        caller.join()
    (doubt,) = told(home, tmp_path, "ledger", "doubts")["unknown"]
    assert (doubt["model"], doubt["held"]) == (IMAGE["model"], "10")
    how = ("ledger", "resolve", doubt["hold"], "--credits", "4", "--reason", "the gateway's bill says so")
    assert told(home, tmp_path, *how)["credits"] == "4"
    assert told(home, tmp_path, "ledger", "doubts") == {"unknown": [], "uncertain": []}
    assert told(home, tmp_path, "ledger", "verify")["ok"]
    with place(home, gateway, tmp_path) as program:
        assert limit(program.url("listens on")) == (4.0, 0.0)
        assert program.stop() == 0
