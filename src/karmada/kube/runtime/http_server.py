"""How an aiohttp application is served, in every program that has one.

No response names the software that sends it, those to malformed requests included. A connection that has not sent the
whole head of a request in time is closed, as is one that idles. What is not HTTP is logged in one short line.
"""

from __future__ import annotations

import ssl
from functools import partial
from typing import Any, Final

from aiohttp import hdrs, web
from aiohttp.http import SERVER_SOFTWARE

from karmada.kube.runtime.listening import listen_host
from karmada.kube.runtime.malformed_requests import shorten_malformed_requests

IDLE_SECONDS: Final = 75.0
"""For how long a connection may have no request, or a part of its head only."""


def hide_software(response: web.StreamResponse) -> None:
    """Without aiohttp's Server header; one that a proxied server sent stays."""
    if response.headers.get(hdrs.SERVER) == SERVER_SOFTWARE:
        del response.headers[hdrs.SERVER]


class _Request(web.Request):
    """Made for malformed requests as well, whose responses reach no handler and no signal of the application."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        await super()._prepare_hook(response)
        hide_software(response)


async def serve(
    app: web.Application,
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    *,
    idle: float = IDLE_SECONDS,
    **settings: Any,
) -> web.AppRunner:
    """Listen; `runner.addresses` has the port for 0. OSError when it cannot."""
    shorten_malformed_requests()
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=idle, **settings)
    await runner.setup()
    assert runner.server is not None
    runner.server.request_factory = partial(app._make_request, _cls=_Request)
    try:
        await web.TCPSite(runner, listen_host(host), port, ssl_context=tls).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner
