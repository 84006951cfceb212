"""A pod of a member: its containers, events and logs as they are written, and a terminal in it.

The terminal is a WebSocket: binary messages are bytes of the terminal in both directions, text messages from the
browser are its size ({"columns", "rows"}).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiohttp import WSCloseCode, WSMsgType, web

from karmada.dashboard import reads, security
from karmada.dashboard.graph import pod_state
from karmada.dashboard.object_events import events_of
from karmada.dashboard.view import PageModule, Route, View
from karmada.kube.client.client import resource_path
from karmada.kube.client.pod_streams import RemoteCommand, execute
from karmada.kube.client.transport import Call, ConnectionFailed, Transport
from karmada.kube.objects.errors import ApiError, BadRequest, Forbidden
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait

_PATH: Final = "/pods/{cluster}/{namespace}/{name}"
_TAIL: Final = 500
_MOST_TAIL: Final = 5000
_MOST_EVENTS: Final = 40
_MOST_CELLS: Final = 1000
_SHELL: Final = ("sh",)
"""Which nearly every image has."""


@dataclass(frozen=True, slots=True)
class Container:
    name: str
    image: str
    state: str
    text: str
    restarts: int


def containers_of(pod: Obj) -> list[Container]:
    """Return the containers that run, then those that prepare."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    found: list[Container] = []
    for part, statuses in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        known = {one["name"]: one for one in status.get(statuses) or ()}
        found += [_container(one, known.get(one["name"]) or {}) for one in spec.get(part) or ()]
    return found


def _container(container: Obj, status: Obj) -> Container:
    state = status.get("state") or {}
    kind, text = "warn", "Waiting"
    if "running" in state:
        kind, text = ("good", "Running") if status.get("ready") else ("warn", "Running, not ready")
    elif "terminated" in state:
        ended = state["terminated"]
        kind = "idle" if ended.get("exitCode") == 0 else "bad"
        text = f"{ended.get('reason') or 'Ended'} ({ended.get('exitCode')})"
    elif "waiting" in state:
        reason = str(state["waiting"].get("reason") or "Waiting")
        kind, text = "bad" if "BackOff" in reason or "Err" in reason else "warn", reason
    return Container(
        str(container["name"]), str(container.get("image") or ""), kind, text, int(status.get("restartCount") or 0)
    )


def _stream(view: View) -> Transport:
    return view.viewer.member(view.path["cluster"]).transport


async def _read(view: View) -> tuple[Obj, Sequence[Obj] | None]:
    """Return the pod, and its events; None without the right to see them."""
    path = view.path
    member = view.viewer.member(path["cluster"])
    pod = await member.get(PODS, path["name"], path["namespace"])
    events = await events_of(member, pod)
    return pod, events[:_MOST_EVENTS] if events is not None else None


async def show(view: View) -> web.StreamResponse:
    path = view.path
    pod, events = await _read(view)
    state, text = pod_state(pod)
    data: dict[str, Any] = {
        "cluster": path["cluster"], "pod": pod, "state": state, "text": text, "events": events,
        "containers": containers_of(pod), "url": f"/pods/{path['cluster']}/{path['namespace']}/{path['name']}",
        "topics": [reads.topic(PODS, path["namespace"], cluster=path["cluster"], name=path["name"])],
    }  # fmt: skip
    if view.request.headers.get("HX-Request"):
        return view.part("partials/pod.html", **data)
    terminal = await reads.allowed(
        view.may_write(
            "create", PODS, path["namespace"], name=path["name"], subresource="exec", cluster=path["cluster"]
        )
    )
    return view.page("pod.html", title=f"Pod {path['name']}", tail=_TAIL, terminal=terminal, **data)


# logs


async def logs(view: View) -> web.StreamResponse:
    """Send logs as text, while they are written, until the browser has enough."""
    path, query = view.path, view.query
    tail = query.get("tail", str(_TAIL))
    if not tail.isdigit() or int(tail) > _MOST_TAIL:
        raise BadRequest(f"tail must be a number of lines, at most {_MOST_TAIL:,}")
    wanted = {"follow": "true", "tailLines": tail, "container": query.get("container", "")}
    wanted |= {name: "true" for name in ("timestamps", "previous") if query.get(name)}
    call = Call(
        "GET",
        resource_path(PODS, path["namespace"], path["name"], "log"),
        {key: value for key, value in wanted.items() if value},
        accept="application/json, */*",
    )
    chunks = _stream(view).stream(call)
    first = await anext(chunks, b"")  # errors are a response of their own
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"})
    await response.prepare(view.request)
    with contextlib.suppress(ConnectionError):  # the browser has gone
        await response.write(first)
        async for chunk in chunks:
            await response.write(chunk)
    return response


# terminal


async def terminal(view: View) -> web.StreamResponse:
    if security.cross_site("POST", view.request.headers):  # browsers let any page open a WebSocket
        raise Forbidden("a terminal is opened from the dashboard's own pages only")
    path = view.path
    command = await execute(
        _stream(view), path["namespace"], path["name"], _SHELL,
        container=view.query.get("container", ""), stdin=True, tty=True,
    )  # fmt: skip
    socket = web.WebSocketResponse(heartbeat=30.0, max_msg_size=1 << 20)
    try:
        await socket.prepare(view.request)
        typing = asyncio.create_task(_typed(socket, command))
        try:
            with contextlib.suppress(ConnectionError):  # the browser has gone
                async for _, data in command.output():
                    await socket.send_bytes(data)
                await socket.send_str(await _ended(command))
        finally:
            await cancel_and_wait(typing)
    finally:  # whatever was typed or sent, no shell stays behind
        await command.close()
        await socket.close()
    return socket


async def _typed(socket: web.WebSocketResponse, command: RemoteCommand) -> None:
    """Pass on what is typed until the browser leaves, or sends what is no size: then the shell ends."""
    try:
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                await command.write(message.data)
            elif message.type is WSMsgType.TEXT:
                await command.resize(*size_of(message.data))
    except ValueError as error:
        await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=str(error).encode())
    await command.close()


def size_of(text: str) -> tuple[int, int]:
    """Return columns and rows; ValueError for anything else."""
    given = orjson.loads(text)
    columns, rows = (given.get("columns"), given.get("rows")) if isinstance(given, dict) else (None, None)
    if (
        isinstance(columns, int)
        and isinstance(rows, int)
        and 0 < min(columns, rows) <= max(columns, rows) < _MOST_CELLS
    ):
        return columns, rows
    raise ValueError(f"columns and rows must be numbers from 1 to {_MOST_CELLS - 1}")


async def _ended(command: RemoteCommand) -> str:
    try:
        return f"The shell has ended with exit code {await command.exit_code()}."
    except (ApiError, ConnectionFailed) as error:
        return f"The terminal is closed: {error}"


PAGE: Final = PageModule(
    routes=(
        Route("GET", _PATH, show),
        Route("GET", _PATH + "/logs", logs),
        Route("GET", _PATH + "/terminal", terminal, changes=True),
    )
)
