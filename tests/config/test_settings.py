import dataclasses
from pathlib import Path

import pytest

from proxy.config.settings import (
    SETTINGS,
    Auth,
    Credential,
    Durability,
    LogFormat,
    LogLevel,
    Settings,
    user_data_folder,
)
from proxy.config.sources import NOT_SETTINGS, load
from proxy.config.values import Address


def test_every_row_of_the_table_is_a_field_and_every_field_is_a_row():
    fields = [field.name for field in dataclasses.fields(Settings) if field.name != "notes"]
    assert sorted(row.name for row in SETTINGS) == sorted(fields)


def test_no_two_rows_share_a_flag_or_a_variable():
    flags = [row.flag for row in SETTINGS if row.flag]
    variables = [row.variable for row in SETTINGS]
    assert len(set(flags)) == len(flags)
    assert len(set(variables)) == len(variables)
    assert not NOT_SETTINGS & set(variables)


def test_secrets_have_no_flag():
    """An argument shows in process lists and shell histories."""
    assert {row.name for row in SETTINGS if not row.flag} == {
        *("upstream_key", "admin_token", "tenant_token", "alert_url", "alert_secret"),
    }


def test_defaults_are_those_of_the_borders():
    settings = load({}, {"HOME": "/home/ann"}, None)
    expected = {
        "upstream": None,
        "credential": Credential.PROXY,
        "auth": Auth.KEYS,
        "listen": Address("127.0.0.1", 8787),
        "admin_listen": Address("127.0.0.1", 8788),
        "policies": Path("policies"),
        "durability": Durability.FULL,
        "native_segment": "partner",
        "allowed_hosts": (),
        "cors_origins": (),
        "max_body": 26_214_400,
        "max_header_bytes": 65_536,
        "drain": 30,
        "head_timeout": 15,
        "body_timeout": 120,
        "body_idle_timeout": 15,
        "write_timeout": 60,
        "keepalive_timeout": 75,
        "connect_timeout": 10,
        "upstream_read_timeout": 600,
        "upstream_keepalive": 15,
        "read_on_time": 600,
        "read_on_bytes": 32 * 1024**2,
        "read_on_max": 256,
        "spool_bytes": 8 * 1024**2,
        "queue_bytes": 256 * 1024**2,
        "max_connections": 4096,
        "max_connections_per_peer": 4096,
        "log_format": LogFormat.AUTO,
        "log_level": LogLevel.INFO,
    }
    assert {name: getattr(settings, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("environ", "platform", "folder"),
    [
        ({"HOME": "/home/ann"}, "linux", "/home/ann/.local/share/sluicegate"),
        ({"HOME": "/home/ann", "XDG_DATA_HOME": "/data"}, "linux", "/data/sluicegate"),
        ({"HOME": "/Users/ann"}, "darwin", "/Users/ann/Library/Application Support/sluicegate"),
        ({"USERPROFILE": "/u/ann", "LOCALAPPDATA": "/u/ann/local"}, "win32", "/u/ann/local/sluicegate"),
    ],
)
def test_data_lies_where_the_platform_keeps_it(environ, platform, folder):
    assert user_data_folder(environ, platform) == Path(folder)
