"""For programs that interpret kinds as a webhook: a function gets a request and returns a response; the rest is here.

    def interpret(request: InterpreterRequest) -> InterpreterResponse:
        if request.operation == "InterpretHealth":
            return InterpreterResponse(successful=True, healthy=request.object["status"]["ready"])
        return errored(400, f"wrong request operation type: {request.operation}")

    asyncio.run(serve({"/interpret": interpret}, Path("certs"), port=8445))

The function may be a coroutine function. A response is always sent with HTTP's 200: whether it is a success it says
itself, with a status for people. An exception of the function is a response with the code 500 and its text.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import orjson

from karmada.api.interpreter_context import (
    API_VERSION,
    KIND,
    InterpreterRequest,
    InterpreterResponse,
    RequestStatus,
    ResourceInterpreterContext,
)
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import diff
from karmada.kube.runtime.logging import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

MAX_BODY: Final = 1 << 20
CONTENT_TYPE: Final = "application/json"
CERTIFICATE, KEY = "tls.crt", "tls.key"
Interpret: TypeAlias = Callable[[InterpreterRequest], InterpreterResponse | Awaitable[InterpreterResponse]]
log = get_logger("interpreter.webhook-server")


class BadRequest(ValueError):
    """The body is no request."""


# responses


def succeeded(message: str = "") -> InterpreterResponse:
    return InterpreterResponse(successful=True, status=RequestStatus(message=message, code=200))


def refused(message: str) -> InterpreterResponse:
    return InterpreterResponse(successful=False, status=RequestStatus(message=message, code=403))


def errored(code: int, message: str) -> InterpreterResponse:
    return InterpreterResponse(successful=False, status=RequestStatus(message=message, code=code))


def patched(original: Obj, modified: Obj) -> InterpreterResponse:
    """Return the response that makes the original the modified one; a plain success if they are the same."""
    operations = diff(original, modified)
    response = succeeded()
    if operations:
        response.patch = base64.b64encode(orjson.dumps(operations)).decode()
        response.patch_type = "JSONPatch"
    return response


# one request


def decode(body: bytes, content_type: str) -> InterpreterRequest:
    if content_type != CONTENT_TYPE:
        raise BadRequest(f"contentType={content_type}, expected {CONTENT_TYPE}")
    if not body:
        raise BadRequest("request body is empty")
    try:
        request = msgspec.json.decode(body, type=ResourceInterpreterContext).request
    except msgspec.DecodeError as error:
        raise BadRequest(str(error)) from error
    if request is None:
        raise BadRequest("there is no request in the ResourceInterpreterContext")
    return request


def encode(response: InterpreterResponse, uid: str) -> bytes:
    """With the uid of the request, and a status."""
    response.uid = uid
    response.status = response.status or RequestStatus()
    response.status.code = response.status.code or 200
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": _plain(response)})


def _plain(response: InterpreterResponse) -> Obj:
    """`successful` is sent also when it is false."""
    return {"uid": response.uid, "successful": response.successful, **response.to_obj()}


async def answer(interpret: Interpret, body: bytes, content_type: str) -> bytes:
    """Return the body of the response to the body of a request."""
    try:
        request = decode(body, content_type)
    except BadRequest as error:
        return encode(errored(400, str(error)), "")
    try:
        found = interpret(request)
        response = await found if inspect.isawaitable(found) else found
    except Exception as error:
        log.exception("A request could not be interpreted", error, operation=request.operation, name=request.name)
        response = errored(500, f"{type(error).__name__}: {error}")
    return encode(response, request.uid)


# the server


def application(paths: Mapping[str, Interpret]) -> web.Application:
    """Return an aiohttp application with one route for each path, for those who have a server already."""
    from aiohttp import web

    app = web.Application(client_max_size=MAX_BODY)
    for path, interpret in paths.items():
        app.router.add_post(path, _route(interpret))
    return app


def _route(interpret: Interpret) -> Callable[[web.Request], Awaitable[web.Response]]:
    from aiohttp import web

    async def handle(raw: web.Request) -> web.Response:
        try:
            body = await raw.read()
        except web.HTTPRequestEntityTooLarge:
            made = encode(errored(400, f"request body is larger than {MAX_BODY} bytes"), "")
        else:
            made = await answer(interpret, body, raw.headers.get("Content-Type", ""))
        return web.Response(body=made, content_type=CONTENT_TYPE)

    return handle


@asynccontextmanager
async def serving(
    paths: Mapping[str, Interpret],
    cert_dir: Path,
    *,
    host: str = "0.0.0.0",
    port: int = 8445,
    clock: Clock | None = None,
) -> AsyncIterator[int]:
    """Serve by HTTPS; return the port, which is a free one for 0.

    The certificate and key are tls.crt and tls.key of the directory, and are loaded again when they change. OSError
    for files that cannot be used.
    """
    from karmada.kube.runtime.http_server import serve as listen
    from karmada.kube.server.auth.serving import FollowedServing

    tls = FollowedServing(cert_dir / CERTIFICATE, cert_dir / KEY, "VersionTLS12", clock or RealClock())
    runner = await listen(application(paths), host, port, tls.context)
    following = asyncio.create_task(tls.follow())
    try:
        yield runner.addresses[0][1]
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await runner.cleanup()


async def serve(
    paths: Mapping[str, Interpret], cert_dir: Path, *, host: str = "0.0.0.0", port: int = 8445
) -> None:  # fmt: skip
    """Until it is cancelled."""
    async with serving(paths, cert_dir, host=host, port=port) as bound:
        log.info("Serving", host=host, port=bound)
        await asyncio.Event().wait()


__all__ = [
    "BadRequest",
    "InterpreterRequest",
    "InterpreterResponse",
    "answer",
    "application",
    "decode",
    "encode",
    "errored",
    "patched",
    "refused",
    "serve",
    "serving",
    "succeeded",
]
