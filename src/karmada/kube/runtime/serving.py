"""The small HTTP server every component has: /metrics, /healthz, /livez and /readyz."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from karmada.kube.runtime.health import Health, Report

if TYPE_CHECKING:
    from aiohttp import web

ENDPOINTS = ("healthz", "livez", "readyz")


class Exposes(Protocol):
    """Metrics that can be scraped."""

    def expose(self) -> tuple[bytes, str]:
        """Return the page for a scraper, and its content type."""
        ...


class ObservabilityServer:
    """A manager's component; `port` 0 takes a free one, which `port` then is."""

    name = "observability"

    def __init__(self, health: Health, metrics: Exposes | None = None, *, host: str = "0.0.0.0", port: int = 0) -> None:
        self.host = host
        self.port = port
        self._health = health
        self._metrics = metrics
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        from aiohttp import web

        from karmada.kube.runtime.http_server import serve

        app = web.Application()
        for endpoint in ENDPOINTS:
            app.router.add_get(f"/{endpoint}", self._all_checks)
            app.router.add_get(f"/{endpoint}/{{check:.+}}", self._one_check)
        if self._metrics is not None:
            app.router.add_get("/metrics", self._scrape)
        self._runner = await serve(app, self.host, self.port)
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _all_checks(self, request: web.Request) -> web.Response:
        endpoint = request.path.strip("/")
        verbose, exclude = "verbose" in request.query, request.query.getall("exclude", [])
        return _answer(await self._health.report(endpoint, verbose=verbose, exclude=exclude))

    async def _one_check(self, request: web.Request) -> web.Response:
        endpoint = request.path.strip("/").partition("/")[0]
        return _answer(await self._health.single(endpoint, request.match_info["check"]))

    async def _scrape(self, _: web.Request) -> web.Response:
        from aiohttp import web

        assert self._metrics is not None
        page, content_type = self._metrics.expose()
        return web.Response(body=page, headers={"Content-Type": content_type})


def _answer(report: Report) -> web.Response:
    from aiohttp import web

    return web.Response(status=report.code, text=report.body, headers={"X-Content-Type-Options": "nosniff"})
