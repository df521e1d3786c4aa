"""Delivers news to a webhook: signed, tried again until it is taken, and kept on disk until then."""

import asyncio
import contextlib
import hmac
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import orjson
from aiohttp import ClientError, ClientSession, ClientTimeout

from proxy.config.secret import Secret
from proxy.config.settings import AlertFormat
from proxy.observe.news import News
from proxy.server.normalise import USER_AGENT
from proxy.server.parts import Parts
from proxy.stores.newsfile import Kept, NewsFile
from proxy.units import instant_text

EVERY_S: Final = 0.5
"""How often somebody looks whether there is news."""

TIMEOUT_S: Final = 10.0
FIRST_PAUSE_S: Final = 5.0
PAUSE_MAX_S: Final = 600.0
"""Pause after a failure: doubled each time, up to ten minutes."""

GIVEN_UP_S: Final = 86_400.0
"""News of yesterday helps nobody."""


def message(news: News, form: AlertFormat) -> bytes:
    """The body that is posted."""
    if form is AlertFormat.SLACK:
        text = news.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return orjson.dumps({"text": text})
    said = {"id": news.id, "kind": news.kind, "at": instant_text(news.at_s), "text": news.text, "about": news.about}
    return orjson.dumps(said)


def signed(body: bytes, secret: Secret | None, at_s: float) -> Mapping[str, str]:
    """Header lines by which a receiver knows whose message it is and when it was made."""
    stamp = str(int(at_s))
    lines = {"Content-Type": "application/json", "User-Agent": USER_AGENT, "X-Sluicegate-Timestamp": stamp}
    if secret is not None:
        digest = hmac.new(secret.reveal().encode(), stamp.encode() + b"." + body, sha256).hexdigest()
        lines["X-Sluicegate-Signature"] = f"v1={digest}"
    return lines


async def watch(parts: Parts, *, every_s: float = EVERY_S, first_pause_s: float = FIRST_PAUSE_S) -> None:
    """Deliver until cancelled; without an address there is nothing to do."""
    url = parts.settings.alert_url
    if url is None:
        return
    file, pause_s, next_s = NewsFile(parts.settings.data), first_pause_s, 0.0
    async with ClientSession(timeout=ClientTimeout(total=TIMEOUT_S)) as session:
        while True:
            await asyncio.sleep(every_s)
            await _keep(parts, file)
            if not parts.news.waiting or time.monotonic() < next_s:
                continue
            if await _deliver(parts.news.waiting[0], url, session, parts):
                pause_s, next_s = first_pause_s, 0.0
            else:
                next_s, pause_s = time.monotonic() + pause_s, min(2 * pause_s, PAUSE_MAX_S)


async def _keep(parts: Parts, file: NewsFile) -> None:
    """Write down what changed, before anything of it is sent."""
    if not parts.news.changed:
        return
    parts.news.changed = False
    kept = Kept(tuple(parts.news.told), tuple(one.plain for one in parts.news.waiting))
    try:
        await asyncio.to_thread(file.keep, kept)
    except OSError as error:
        parts.log.note("warning", "alerts_not_kept", why=error.strerror or str(error))


async def _deliver(news: News, url: Secret, session: ClientSession, parts: Parts) -> bool:
    """Whether it is over: taken, or too old to be tried again."""
    body = message(news, parts.settings.alert_format)
    headers = signed(body, parts.settings.alert_secret, parts.wall())
    why = ""
    try:
        # A webhook's address is a secret of its own: it goes nowhere else, so a redirect is not followed.
        async with session.post(url.reveal(), data=body, headers=headers, allow_redirects=False) as answer:
            if 200 <= answer.status < 300:
                parts.metrics.count("alerts_total", news.kind, "delivered")
                parts.news.done(news)
                return True
            why = f"status {answer.status}"
    except (ClientError, TimeoutError, ValueError) as error:
        why = type(error).__name__
    parts.metrics.count("alerts_total", news.kind, "failed")
    parts.log.note("warning", "alert_not_delivered", kind=news.kind, id=news.id, why=why)
    if parts.wall() - news.at_s > GIVEN_UP_S:
        parts.metrics.count("alerts_total", news.kind, "given_up")
        parts.news.done(news)
        return True
    return False


def kept_news(file: NewsFile) -> tuple[tuple[str, ...], list[News]]:
    """What an earlier process had told, and what it could not deliver."""
    kept, waiting = file.read(), []
    for one in kept.waiting:
        with contextlib.suppress(TypeError):
            waiting.append(News(**one))
    return kept.told, waiting
