"""The dashboard's own HTTPS server: sessions, security rules and pages around handlers that only read the API.

Every request passes one function: the rules of security.py, then static files and the login, then the session, then the
route of a page. What the API refuses becomes a page that says so.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

from aiohttp import BodyPartReader, web

from karmada.dashboard import security
from karmada.dashboard.assets import Assets
from karmada.dashboard.live import Live
from karmada.dashboard.login import Login, LoginRefused
from karmada.dashboard.pages import PAGES
from karmada.dashboard.predictions import Predictions
from karmada.dashboard.rendering import environment
from karmada.dashboard.sessions import COOKIE, Session, Sessions
from karmada.dashboard.view import LIVE_HEADER, PageModule, Route, View
from karmada.dashboard.viewer import Viewer
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import ApiError, Forbidden, NotFound, Unauthorized
from karmada.kube.runtime.http_server import serve
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait

log = get_logger("dashboard")
_EXPIRE_SECONDS: Final = 60.0
_BEAT_SECONDS: Final = 25.0
"""How often an idle stream is written to, so that a page that is gone is noticed."""
_LOGIN_BODY_SECONDS: Final = 30.0
"""For how long somebody who is nobody yet may take to send a login."""
_NONCE: ContextVar[str] = ContextVar("nonce", default="")
"""The nonce of the request that this task handles."""
_METHODS: Final = ("token", "kubeconfig", "certificate")
_NAMES: Final = ("cluster", "namespace")
"""Fields of a query that become parts of API paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    """Names by which browsers reach it, besides localhost and addresses."""
    writes: bool = False
    """True if it may change things; the viewer's own rights decide in any case."""


class Dashboard:
    """`tls` is what it listens with; None (tests of rules) serves plain HTTP."""

    def __init__(
        self,
        login: Login,
        options: Options,
        tls: ssl.SSLContext | None,
        *,
        clock: Clock = SYSTEM,
        pages: Sequence[PageModule] = PAGES,
    ) -> None:
        self.options, self.port = options, options.port
        self._login, self._tls, self._clock = login, tls, clock
        self.sessions = Sessions(clock)
        self._attempts = security.AttemptLimit(clock)
        self._predictions = Predictions()
        self._assets = Assets()
        self._environment = environment(self._assets)
        self._nav = [page.nav for page in pages if page.nav is not None]
        self._lives: WeakKeyDictionary[Any, Live] = WeakKeyDictionary()
        self._runner: web.AppRunner | None = None
        self._expiring: asyncio.Task[None] | None = None
        self.app = web.Application(client_max_size=security.MAX_BODY, middlewares=[self._guard])
        self.app.on_response_prepare.append(_protect)
        self._add_routes(pages)

    def _add_routes(self, pages: Sequence[PageModule]) -> None:
        router = self.app.router
        router.add_get("/assets/{digest}/{name:.+}", self._asset)
        router.add_get("/favicon.ico", self._icon)
        router.add_get("/login", self._login_page)
        router.add_post("/login", self._log_in)
        router.add_post("/logout", self._log_out)
        router.add_get("/live", self._live)
        for page in pages:
            for route in page.routes:
                router.add_route(route.method, route.path, self._handler(route))

    # life

    @property
    def url(self) -> str:
        host = self.options.host
        shown = "localhost" if host in ("0.0.0.0", "::", "127.0.0.1", "::1", "") else host
        return f"{'https' if self._tls else 'http'}://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    @property
    def open_pages(self) -> int:
        return sum(live.streams for live in self._lives.values())

    async def start(self) -> None:
        self._runner = await serve(self.app, self.options.host, self.port, self._tls, handler_cancellation=True)
        self.port = self._runner.addresses[0][1]
        self._expiring = asyncio.create_task(self._expire(), name="dashboard sessions")

    async def stop(self) -> None:
        if self._expiring is not None:
            self._expiring.cancel()
        await self.sessions.close_all()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _expire(self) -> None:
        while True:
            await self._clock.sleep(_EXPIRE_SECONDS)
            await self.sessions.expire()

    # every request

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Return the security rules around every request, whatever it is for."""
        _NONCE.set(secrets.token_urlsafe(16))
        host = request.headers.get("Host", "")
        navigation = request.headers.get("Sec-Fetch-Mode") == "navigate"
        refused = security.host_refused(host, self.options.names) or security.cross_site(
            request.method, request.headers, navigation=navigation
        )
        if refused:
            return self._plain_error(403, f"Refused: {refused}")
        try:
            response: web.StreamResponse = await handler(request)
        except web.HTTPNotFound:
            response = await self._nowhere(request)
        except web.HTTPException as error:
            response = self._plain_error(error.status, error.reason)
        return response

    async def _nowhere(self, request: web.Request) -> web.StreamResponse:
        """Return a page for who is logged in and a person; otherwise a word, which says nothing of what there is."""
        session = await self._session_of(request, touch=False)
        if session is None or request.headers.get("Sec-Fetch-Mode") != "navigate":
            return self._plain_error(404, "Not Found")
        return self._failed(self._view(request, session), NotFound(f"there is no page at {request.path}"))

    def _view(self, request: web.Request, session: Session) -> View:
        return View(
            request, session, self._environment, self._clock, self.options.writes, _NONCE.get(), self._predictions,
            self._nav,
        )  # fmt: skip

    async def _session_of(self, request: web.Request, *, touch: bool) -> Session | None:
        secret = request.cookies.get(COOKIE, "")
        return await self.sessions.find(secret, touch=touch) if secret else None

    def _handler(self, route: Route) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            session = await self._session_of(request, touch=LIVE_HEADER not in request.headers)
            if session is None:
                return self._to_login(request)
            if request.method not in security.SAFE and not await self._has_token(request, session):
                return self._plain_error(403, "The page was too old for this. Reload it and try again.")
            if route.changes and not self.options.writes:
                return self._plain_error(403, "This dashboard is read-only: it was started without writes.")
            refused = security.path_refused(_names_in(request, route))
            if refused:
                return self._plain_error(400, refused)
            view = self._view(request, session)
            try:
                with view.until_logout():
                    return await route.handler(view)
            except Unauthorized:
                await self.sessions.close(request.cookies.get(COOKIE, ""))
                return self._to_login(request)
            except (ApiError, ConnectionFailed) as error:
                return self._failed(view, error)

        return handle

    @staticmethod
    async def _has_token(request: web.Request, session: Session) -> bool:
        given = request.headers.get(security.CSRF_HEADER, "")
        form = ("application/x-www-form-urlencoded", "multipart/form-data")
        if not given and request.content_type in form:
            field = (await request.post()).get(security.CSRF_FIELD, "")
            given = field if isinstance(field, str) else ""
        return security.csrf_matches(session.csrf, given)

    # what fails

    @staticmethod
    def _wants_part(request: web.Request) -> bool:
        return "HX-Request" in request.headers

    def _to_login(self, request: web.Request) -> web.Response:
        if self._wants_part(request) or request.path == "/live":
            return web.Response(status=401, headers={"HX-Redirect": "/login"})
        back = request.method == "GET" and request.path != "/"
        target = f"/login?to={quote(request.path_qs)}" if back else "/login"
        response = web.Response(status=303, headers={"Location": target})
        response.del_cookie(COOKIE, path="/", secure=True)
        return response

    def _failed(self, view: View, error: ApiError | ConnectionFailed) -> web.Response:
        """Return the refusal of the API as a page or as a part of one."""
        status, title = 502, "The control plane cannot be reached"
        if isinstance(error, Forbidden):
            status, title = 403, "You may not see this"
        elif isinstance(error, NotFound):
            status, title = 404, "Not found"
        elif isinstance(error, ApiError):
            status, title = error.http_code, "The control plane refused this"
        message = error.message if isinstance(error, ApiError) else str(error)
        if self._wants_part(view.request):
            response = view.part("partials/failure.html", heading=title, message=message)
            response.set_status(status)
            return response
        return view.page("failure.html", title=title, status=status, heading=title, message=message)

    @staticmethod
    def _plain_error(status: int, reason: str) -> web.Response:
        return web.Response(status=status, text=f"{reason}\n")

    # static files

    async def _asset(self, request: web.Request) -> web.Response:
        asset = self._assets.find(request.match_info["digest"], request.match_info["name"])
        if asset is None:
            raise web.HTTPNotFound
        headers = {"Cache-Control": "public, max-age=31536000, immutable", "ETag": f'"{asset.digest}"'}
        body = asset.content
        if asset.compressed is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = asset.compressed
            headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return web.Response(body=body, content_type=asset.content_type, charset="utf-8", headers=headers)

    async def _icon(self, _request: web.Request) -> web.Response:
        """Return the icon for responses that are no pages, where browsers look for it here."""
        return View.redirect(self._assets.url("static/icon.svg"))

    # login

    async def _login_page(self, request: web.Request) -> web.Response:
        if await self._session_of(request, touch=True) is not None:
            return View.redirect("/")
        return self._login_form(request)

    def _login_form(
        self, request: web.Request, *, problem: str = "", method: str = "token", status: int = 200
    ) -> web.Response:
        text = self._environment.get_template("login.html").render(
            problem=problem,
            method=method,
            certificates=self._login.certificates is not None,
            to=security.local(request.query.get("to", "/")),
            nonce=_NONCE.get(),
        )
        return web.Response(text=text, content_type="text/html", status=status, headers={"Cache-Control": "no-store"})

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        """Return the request is known to come from our own page; there is no session yet whose token it could have."""
        address = request.remote or ""
        wait = self._attempts.wait(address)
        if wait > 0:
            problem = f"Too many attempts. Try again in {wait:.0f} seconds."
            return self._login_form(request, problem=problem, status=429)
        try:
            form = await asyncio.wait_for(_login_fields(request), _LOGIN_BODY_SECONDS)
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        method = form.get("method", "")
        try:
            viewer = await self._viewer(request, method, form)
        except LoginRefused as error:
            self._attempts.failed(address)
            log.info("Login refused", method=method, address=address)
            return self._login_form(request, problem=str(error), method=method, status=403)
        await self.sessions.close(request.cookies.get(COOKIE, ""))
        secret, session = await self.sessions.open(viewer)
        live = self._lives[viewer] = Live(viewer, self._clock)
        session.closing.append(live.close)
        log.info("Login", user=viewer.identity.name, method=method, address=address)
        response = View.redirect(security.local(form.get("to", "/")))
        response.set_cookie(COOKIE, secret, path="/", secure=True, httponly=True, samesite="Strict")
        return response

    async def _viewer(self, request: web.Request, method: str, form: Mapping[str, str]) -> Viewer:
        if method == "token":
            return await self._login.by_token(form.get("token", ""))
        if method == "kubeconfig":
            return await self._login.by_kubeconfig(form.get("file", "") or form.get("kubeconfig", ""))
        if method == "certificate":
            tls = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
            return await self._login.by_certificate(tls.getpeercert(True) if tls is not None else None)
        raise LoginRefused(f"Choose how to log in: {', '.join(_METHODS)}.")

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        session = await self._session_of(request, touch=True)
        if session is not None:
            if not await self._has_token(request, session):
                return self._plain_error(403, "The page was too old for this. Reload it and try again.")
            await self.sessions.close(request.cookies[COOKIE])
        response = View.redirect("/login")
        response.del_cookie(COOKIE, path="/", secure=True)
        return response

    # live

    async def _live(self, request: web.Request) -> web.StreamResponse:
        session = await self._session_of(request, touch=False)
        if session is None:
            return self._to_login(request)
        live = self._lives[session.viewer]
        topics = request.query.getall("topic", [])
        try:
            stream = live.stream(topics)
        except ValueError as error:
            return self._plain_error(400, str(error))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        await response.write(b"event: open\ndata:\n\n")
        async with aclosing(stream) as events:
            await _relay(events, response)
        return response


async def _relay(events: AsyncGenerator[tuple[str, str], None], response: web.StreamResponse) -> None:
    """Relay events until the session ends, or the page is gone: then the handler is cancelled, or a write fails."""
    following = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            done, _ = await asyncio.wait({following}, timeout=_BEAT_SECONDS)
            if not done:
                await response.write(b":\n\n")
                continue
            event = following.result()
            if event is None:
                await response.write(b"event: logout\ndata:\n\n")
                return
            await response.write(f"event: {event[0]}\ndata: {event[1]}\n\n".encode())
            following = asyncio.ensure_future(anext(events, None))
    except ConnectionResetError:
        return
    finally:
        await cancel_and_wait(following)


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers of security.py to every response, streams and errors too."""
    host = security.host_of(request.headers.get("Host", ""))
    response.headers.update(security.response_headers(_NONCE.get(), host=host))


def _names_in(request: web.Request, route: Route) -> list[str]:
    """Return what becomes parts of API paths; a variable with a pattern has several of them."""
    parts: list[str] = []
    for name, value in request.match_info.items():
        parts += value.split("/") if f"{{{name}:" in route.path else [value]
    return parts + [request.query[name] for name in _NAMES if request.query.get(name)]


async def _login_fields(request: web.Request) -> dict[str, str]:
    """Return the fields of the form and the content of its files, in memory: aiohttp would put files on the disk."""
    size = request.content_length
    if size is None or size > security.MAX_LOGIN:
        raise web.HTTPRequestEntityTooLarge(max_size=security.MAX_LOGIN, actual_size=size or 0)
    if request.content_type != "multipart/form-data":
        return {key: value for key, value in (await request.post()).items() if isinstance(value, str)}
    found: dict[str, str] = {}
    reader = await request.multipart()
    while (part := await reader.next()) is not None:
        if not isinstance(part, BodyPartReader):
            raise web.HTTPBadRequest
        found[part.name or ""] = (await part.read(decode=True)).decode("utf-8", "replace")
    return found
