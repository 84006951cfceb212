"""A request to a page, for its handler: who looks, what was requested, and how the response is made."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aiohttp import web

from karmada.dashboard import reads
from karmada.kube.client.client import Listing
from karmada.kube.objects.errors import TooManyRequests, Unauthorized
from karmada.kube.objects.gvk import GVR

if TYPE_CHECKING:
    from jinja2 import Environment

    from karmada.dashboard.predictions import Predictions
    from karmada.dashboard.sessions import Session
    from karmada.dashboard.viewer import Viewer
    from karmada.kube.client.client import Client
    from karmada.kube.objects.clock import Clock

T = TypeVar("T")
MOST_AT_ONCE: Final = 64
"""Requests of one session, logs and terminals among them. A browser has six connections, or a few more."""
LIVE_HEADER: Final = "X-Live"
"""The header of requests that a change caused, not the viewer."""
SEEN_HEADER: Final = "X-Seen"
"""The header that names what of a part the page has already."""


@dataclass(slots=True)
class View:
    request: web.Request
    session: Session
    environment: Environment
    clock: Clock
    writes: bool
    """True if the dashboard was started so that it may change things."""
    nonce: str
    predictions: Predictions
    nav: Sequence[tuple[str, str]] = ()
    _clusters: Listing | None = field(default=None)

    @property
    def viewer(self) -> Viewer:
        return self.session.viewer

    @property
    def client(self) -> Client:
        """Return the control plane, as the viewer."""
        return self.session.viewer.client

    @property
    def path(self) -> Mapping[str, str]:
        """Return the variable parts of the path."""
        return self.request.match_info

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    async def form(self) -> Mapping[str, str]:
        """Return the text fields of a form."""
        return {key: value for key, value in (await self.request.post()).items() if isinstance(value, str)}

    async def clusters(self) -> Listing:
        """Return all clusters by name, read once per request."""
        if self._clusters is None:
            self._clusters = await reads.clusters(self.client)
        return self._clusters

    async def may_write(
        self, verb: str, resource: GVR, namespace: str = "", *, name: str = "", subresource: str = "", cluster: str = ""
    ) -> bool:
        """Return whether to offer a change: the dashboard may, and the viewer may (in a member, if one is named)."""
        return self.writes and await self.viewer.may(
            verb, resource, namespace, name=name, subresource=subresource, cluster=cluster
        )

    async def predicted(self, predict: Callable[[], Awaitable[T]]) -> T:
        """Return a prediction, computed in its turn: see predictions.py."""
        return await self.predictions.run(self.viewer.identity.name, predict)

    @contextmanager
    def until_logout(self) -> Iterator[None]:
        """End what is done in this context with the session; Unauthorized if that has ended already."""
        if self.session.ended:
            raise Unauthorized("the session has ended")
        if len(self.session.closing) >= MOST_AT_ONCE:
            raise TooManyRequests(f"{MOST_AT_ONCE} requests of this session are open already; close some pages")
        task = asyncio.current_task()
        assert task is not None

        def end() -> None:
            task.cancel("the session has ended")

        self.session.closing.append(end)
        try:
            yield
        finally:
            self.session.closing.remove(end)

    # responses

    def page(self, template: str, *, title: str, status: int = 200, **data: Any) -> web.Response:
        """Return a whole page: a template that extends layout.html."""
        path = self.request.path
        section = max((url for url, _ in self.nav if path == url or path.startswith(f"{url.rstrip('/')}/")), default="")
        text = self._render(template, title=title, nav=self.nav, section=section, **data)
        return web.Response(text=text, content_type="text/html", status=status, headers={"Cache-Control": "no-store"})

    def shown(self, template: str, *, title: str, **data: Any) -> web.Response:
        """Return the page, or, when the page itself requests it again, the part of the same name."""
        if self.request.headers.get("HX-Request"):
            return self.part(f"partials/{template}", **data)
        return self.page(template, title=title, **data)

    def part(self, template: str, **data: Any) -> web.Response:
        """Return a part of a page, requested again by it; 204 when it already has exactly this."""
        text = self._render(template, **data)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        headers = {"Cache-Control": "no-store", "X-Part": digest}
        if self.request.headers.get(SEEN_HEADER) == digest:
            return web.Response(status=204, headers=headers)
        return web.Response(text=text, content_type="text/html", headers=headers)

    def _render(self, template: str, **data: Any) -> str:
        return self.environment.get_template(template).render(
            viewer=self.viewer.identity,
            csrf=self.session.csrf,
            writes=self.writes,
            nonce=self.nonce,
            now=self.clock.now(),
            **data,
        )

    @staticmethod
    def redirect(url: str) -> web.Response:
        return web.Response(status=303, headers={"Location": url})


Handler = Callable[[View], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """`changes`: it may be requested only where the dashboard may change things, which also hides what leads to it."""

    method: str
    path: str
    handler: Handler
    changes: bool = False


@dataclass(frozen=True, slots=True)
class PageModule:
    """The export PAGE of a module in `pages`: its routes, and its entry in the navigation, if it has one."""

    routes: Sequence[Route]
    nav: tuple[str, str] | None = None
    """URL and label."""
