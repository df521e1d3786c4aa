"""A proxy whose ledger is a file, so that the next one in the same folder is the same proxy after a restart."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from proxy.config.settings import LogFormat, LogLevel
from proxy.config.sources import load
from proxy.core.policy import Policy
from proxy.observe.log import RequestLog
from proxy.server.app import running
from proxy.server.opening import Doubles
from tests.proxies import KEY, Front, afternoon_s


@asynccontextmanager
async def restarted(upstream: str, policy: Policy, data: Path, **flags: Any) -> AsyncIterator[Front]:
    given = {"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "auth": "open", "drain": "5s", **flags}
    settings = load({"upstream": upstream, "data": str(data), **given}, {"SLUICEGATE_UPSTREAM_KEY": KEY}, None)
    sink: list[Front] = []
    log = RequestLog(lambda line: sink[0].logged(line) if sink else None, form=LogFormat.JSON, level=LogLevel.DEBUG)
    async with (
        running(settings, policy, Doubles(log=log, wall=afternoon_s)) as proxy,
        aiohttp.ClientSession() as client,
    ):
        sink.append(Front(proxy, client))
        yield sink[0]
