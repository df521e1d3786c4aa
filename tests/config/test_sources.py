import pytest

from proxy.config.problem import Problems
from proxy.config.secret import Secret
from proxy.config.settings import SETTINGS, Auth
from proxy.config.sources import load, settings_file
from proxy.config.values import BaseUrl

KEY = {"SLUICEGATE_UPSTREAM_KEY": "gk-0123456789abcdef"}


def problems_of(flags=None, environ=None, file=None, *, serving=False):
    with pytest.raises(Problems) as caught:
        load(flags or {}, environ or {}, file, serving=serving)
    return [str(problem) for problem in caught.value.problems]


def a_file(tmp_path, text):
    path = tmp_path / "sluicegate.yaml"
    path.write_text(text)
    return path


def a_secret_file(tmp_path, text="gk-from-a-file-1\n", mode=0o600):
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_flags_win_over_environment_over_file_over_defaults(tmp_path):
    file = a_file(tmp_path, "drain: 1s\nbody_timeout: 2s\nhead_timeout: 3s\n")
    environ = {"SLUICEGATE_DRAIN": "11s", "SLUICEGATE_BODY_TIMEOUT": "12s"}
    settings = load({"drain": "21s"}, environ, file)
    assert (settings.drain, settings.body_timeout, settings.head_timeout, settings.write_timeout) == (21, 12, 3, 60)


def test_each_setting_can_be_given_in_each_place_it_may_stand(tmp_path):
    """Every row is read from its flag, its variable and its key, to the same value."""
    (tmp_path / "policies").mkdir()
    key = a_secret_file(tmp_path)
    hook = tmp_path / "hook"
    hook.write_text("https://hooks.example/T0/secret")
    hook.chmod(0o600)
    written = {
        "upstream": "https://gateway.example",
        "tenant_url": "https://groups.example",
        "otlp_endpoint": "http://127.0.0.1:4318",
        "policies": str(tmp_path / "policies"),
        "data": str(tmp_path),
        "allowed_hosts": "box.example",
        "cors_origins": "https://app.example",
    } | {row.name: str(key) for row in SETTINGS if row.name.endswith("_file")}
    written["alert_url_file"] = str(hook)
    for row in SETTINGS:
        if row.secret:
            continue
        text = written.get(row.name) or row.default
        by_flag = load({row.name: (text,) if row.repeatable else text}, {}, None)
        by_variable = load({}, {row.variable: text}, None)
        by_file = load({}, {}, a_file(tmp_path, f"{row.name}: {text}\n"))
        assert getattr(by_flag, row.name) == getattr(by_variable, row.name) == getattr(by_file, row.name), row.name


def test_repeatable_settings_take_commas_in_the_environment_and_lists_in_the_file(tmp_path):
    expected = ("a.example", "b.example")
    assert load({"allowed_hosts": ("a.example", "B.example")}, {}, None).allowed_hosts == expected
    assert load({}, {"SLUICEGATE_ALLOWED_HOSTS": "a.example, b.example"}, None).allowed_hosts == expected
    assert load({}, {}, a_file(tmp_path, "allowed_hosts: [a.example, b.example]")).allowed_hosts == expected


def test_an_empty_variable_is_not_set():
    assert load({}, {"SLUICEGATE_DRAIN": "", "SLUICEGATE_UPSTREAM": " "}, None).drain == 30


def test_all_problems_come_at_once_each_with_its_place(tmp_path):
    file = a_file(tmp_path, "drain: soon\nmax_boddy: 1\nupstream_key: gk-secret-in-a-file\nmax-body: 3\n")
    environ = {"SLUICEGATE_BODY_TIMEOUT": "0", "SLUICEGATE_UPSTREEM": "x", "SLUICEGATE_AUTH": "nope"}
    assert problems_of({"listen": "here"}, environ, file) == [
        f"{file}:2:1: max_boddy: is not a setting; did you mean max_body?",
        f"{file}:3:1: upstream_key: a secret does not belong here; use upstream_key_file",
        f"{file}:4:1: max-body: is not a setting; did you mean max_body?",
        "SLUICEGATE_UPSTREEM: is not a setting; did you mean SLUICEGATE_UPSTREAM?",
        "--listen: 'here' is not host:port, such as 127.0.0.1:8787",
        "SLUICEGATE_AUTH: 'nope' is not one of keys, open",
        "SLUICEGATE_BODY_TIMEOUT: '0' is outside 0.05 to 86,400.0 seconds",
        f"{file}:1:1: drain: 'soon' is not a duration: write a number and one of ms, s, m, h, d, w, such as 30s",
    ]


def test_variables_of_a_cluster_are_not_meant_for_us():
    """Kubernetes sets these in every container next to a service named sluicegate."""
    environ = {
        "SLUICEGATE_SERVICE_HOST": "10.0.0.1",
        "SLUICEGATE_PORT": "tcp://10.0.0.1:80",
        "SLUICEGATE_PORT_80_TCP": "",
    }
    assert load({}, environ, None).drain == 30


@pytest.mark.parametrize("listen", ["0.0.0.0:8787", "[::]:8787", "192.0.2.7:8787", "box.example:8787"])
def test_open_auth_is_refused_beyond_loopback(listen):
    (problem,) = problems_of({"auth": "open", "listen": listen})
    assert problem.startswith(f"--auth: auth open lets everybody who reaches {listen} spend; ")


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.8.9.1:0", "[::1]:0", "localhost:0"])
def test_open_auth_is_fine_on_loopback(listen):
    assert load({"auth": "open", "listen": listen}, {}, None).auth is Auth.OPEN


def test_an_admin_listener_beyond_loopback_needs_a_token():
    (problem,) = problems_of({"admin_listen": "0.0.0.0:8788"})
    assert problem.startswith("--admin-listen: 0.0.0.0:8788 is reached from other machines and has no token; ")
    settings = load({"admin_listen": "0.0.0.0:8788"}, {"SLUICEGATE_ADMIN_TOKEN": "at-0123456789"}, None)
    assert settings.admin_token == Secret("at-0123456789")


def test_serving_needs_a_gateway_and_a_key_for_it():
    upstream, key = problems_of(serving=True)
    assert upstream == "--upstream: is not set; give the gateway's address, or try `sluicegate demo`"
    assert key.startswith("--upstream-key-file: there is no gateway key; ")
    assert load({"upstream": "https://g.example"}, KEY, None, serving=True).upstream == BaseUrl(
        "https", "g.example", 443
    )
    # Where callers bring their own keys, ours is not needed.
    assert load({"upstream": "https://g.example", "credential": "caller"}, {}, None, serving=True).upstream_key is None


def test_the_two_listeners_need_two_ports():
    (problem,) = problems_of({"admin_listen": "127.0.0.1:8787"})
    assert problem == "--admin-listen: 127.0.0.1:8787 is where callers connect; choose another port"
    load({"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0"}, {}, None)


def test_an_upstream_that_is_this_proxy_is_refused():
    (problem,) = problems_of({"upstream": "http://localhost:8787"})
    assert problem == "--upstream: http://localhost:8787 is this proxy itself; give the gateway's address"


def test_plain_http_to_another_machine_is_noted():
    (note,) = load({"upstream": "http://gateway.example"}, {}, None).notes
    assert "unencrypted" in note
    assert load({"upstream": "http://127.0.0.1:9"}, {}, None).notes == ()


def test_a_policies_folder_that_was_named_must_exist(tmp_path):
    """Without files there are no limits, so a misspelt path must not pass for an empty folder."""
    missing = tmp_path / "polices"
    assert problems_of({"policies": str(missing)}) == [f"--policies: {missing} is not a folder; mend the path"]


def test_the_key_is_read_from_its_file(tmp_path):
    path = a_secret_file(tmp_path)
    settings = load({"upstream_key_file": str(path)}, {}, None)
    assert settings.upstream_key == Secret("gk-from-a-file-1")
    assert settings.upstream_key_file == path
    assert settings.notes == ()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_is_noted(tmp_path, mode):
    path = a_secret_file(tmp_path, mode=mode)
    assert load({"upstream_key_file": str(path)}, {}, None).notes == (
        f"{path} can be read by others; chmod 600 {path}",
    )


def test_of_key_and_key_file_the_stronger_place_wins(tmp_path):
    path = a_secret_file(tmp_path)
    file = a_file(tmp_path, f"upstream_key_file: {path}")
    by_flag = load({"upstream_key_file": str(path)}, KEY, None)
    assert (by_flag.upstream_key, by_flag.upstream_key_file) == (Secret("gk-from-a-file-1"), path)
    by_variable = load({}, KEY, file)
    assert (by_variable.upstream_key, by_variable.upstream_key_file) == (Secret("gk-0123456789abcdef"), None)


def test_key_and_key_file_in_one_place_are_a_problem(tmp_path):
    environ = KEY | {"SLUICEGATE_UPSTREAM_KEY_FILE": str(a_secret_file(tmp_path))}
    expected = "SLUICEGATE_UPSTREAM_KEY_FILE: SLUICEGATE_UPSTREAM_KEY is set too; set one of them"
    assert expected in problems_of({}, environ)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("gk-two\ngk-lines", "holds no secret"),
        ("gk with spaces", "holds no secret"),
    ],
)
def test_an_unusable_key_file_is_a_problem_that_does_not_show_the_key(tmp_path, text, says):
    path = a_secret_file(tmp_path, text)
    (problem,) = problems_of({"upstream_key_file": str(path)})
    assert problem.startswith(f"--upstream-key-file: {path} {says}")
    assert "gk-" not in problem
    assert "gk " not in problem


def test_a_missing_key_file_is_a_problem(tmp_path):
    (problem,) = problems_of({"upstream_key_file": str(tmp_path / "nokey")})
    assert "nokey cannot be read (No such file or directory)" in problem


def test_an_unusable_key_in_the_environment_is_not_shown():
    (problem,) = problems_of({}, {"SLUICEGATE_UPSTREAM_KEY": "gk-abc\r\nx-evil: 1"})
    assert problem == ("SLUICEGATE_UPSTREAM_KEY: a secret is one line of visible ASCII characters without spaces")


def test_a_settings_file_that_was_named_must_exist(tmp_path):
    (problem,) = problems_of(file=tmp_path / "none.yaml")
    assert problem == f"{tmp_path / 'none.yaml'}: cannot be read (No such file or directory)"


def test_the_settings_file_is_the_named_one_or_the_usual_one_if_there_is_one(tmp_path):
    assert settings_file(None, {}, tmp_path) is None
    usual = a_file(tmp_path, "")
    assert settings_file(None, {}, tmp_path) == usual
    assert settings_file(None, {"SLUICEGATE_CONFIG": "other.yaml"}, tmp_path).name == "other.yaml"
    assert settings_file(tmp_path / "x.yaml", {"SLUICEGATE_CONFIG": "other.yaml"}, tmp_path) == tmp_path / "x.yaml"
