"""Probes of processes, made as a kubelet makes them: an HTTP request, a TCP connection, a command, a gRPC health check.

`Prober` runs the probes of one container while its process lives: startup first, then readiness and liveness side by
side. It reports every change of the verdict, and requests a restart when startup or liveness has failed too often.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from karmada.kube.client.grpc_extra import missing_grpc
from karmada.kube.client.http1 import BrokenAnswer, Origin, open_connection
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.processes.probe_rules import Kind, Streak, Timing, title

_BODY_BYTES = 10 * 1024
_OWN = ("", "localhost", "127.0.0.1", "::1")
"""Hosts that mean the pod itself."""


class ProbeResult(NamedTuple):
    passed: bool
    output: str = ""


Exec = Callable[[list[str], float], Awaitable[ProbeResult]]
"""(command, seconds): run a command in the container."""
Emit = Callable[[str, str, str], None]
"""(type, reason, message) of an event about the pod."""


class Target(NamedTuple):
    """The container and address that are probed."""

    container: Obj
    address: str
    run: Exec


async def probe(target: Target, wanted: Obj, seconds: float) -> ProbeResult:
    """Return the outcome of one probe; one that takes longer than `seconds` has failed."""
    try:
        async with asyncio.timeout(seconds):
            return await _probe(target, wanted, seconds)
    except TimeoutError:
        return ProbeResult(False, f"probe timed out after {seconds:g}s")


async def _probe(target: Target, wanted: Obj, seconds: float) -> ProbeResult:
    if "httpGet" in wanted:
        return await _http(target, wanted["httpGet"], seconds)
    if "tcpSocket" in wanted:
        action = wanted["tcpSocket"]
        return await _tcp(_host(target, action), port_number(target.container, action["port"]))
    if "exec" in wanted:
        return await target.run(list(wanted["exec"].get("command") or ()), seconds)
    if "grpc" in wanted:
        return await _grpc(target.address, int(wanted["grpc"]["port"]), str(wanted["grpc"].get("service") or ""))
    return ProbeResult(True)


def port_number(container: Obj, port: int | str) -> int:
    """Return a port by number or by its name in the container; 0 for a name that it has not."""
    if isinstance(port, int) or port.isdigit():
        return int(port)
    return next((int(p["containerPort"]) for p in container.get("ports") or () if p.get("name") == port), 0)


def _host(target: Target, action: Obj) -> str:
    host = str(action.get("host") or "")
    return target.address if host in _OWN else host


async def _http(target: Target, action: Obj, seconds: float) -> ProbeResult:
    host, port = _host(target, action), port_number(target.container, action["port"])
    secure = str(action.get("scheme") or "HTTP").upper() == "HTTPS"
    headers = {header["name"]: str(header.get("value") or "") for header in action.get("httpHeaders") or ()}
    sent = {"Host": f"{host}:{port}", "User-Agent": "kube-probe", "Accept": "*/*", "Connection": "close", **headers}
    path = str(action.get("path") or "/")
    path = path if path.startswith("/") else f"/{path}"
    try:
        connection = await open_connection(Origin(host, port, _unverified() if secure else None, host), seconds)
    except OSError as error:
        return ProbeResult(False, f'Get "{_url(secure, host, port, path)}": {_reason(error, host, port)}')
    try:
        await connection.send("GET", path, tuple(sent.items()), None)
        answer = await connection.head("GET")
        if 200 <= answer.status < 400:
            return ProbeResult(True)
        return ProbeResult(False, f"HTTP probe failed with statuscode: {answer.status}")
    except (OSError, BrokenAnswer) as error:
        return ProbeResult(False, f'Get "{_url(secure, host, port, path)}": {error}')
    finally:
        connection.close()


def _url(secure: bool, host: str, port: int, path: str) -> str:
    return f"{'https' if secure else 'http'}://{host}:{port}{path}"


def _reason(error: OSError, host: str, port: int) -> str:
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {host}:{port}: connect: connection refused"
    return str(error) or type(error).__name__


def _unverified() -> ssl.SSLContext:
    """Kubelets do not verify the certificates of what they probe."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


async def _tcp(host: str, port: int) -> ProbeResult:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return ProbeResult(False, _reason(error, host, port))
    writer.close()
    return ProbeResult(True)


async def _grpc(host: str, port: int, service: str) -> ProbeResult:
    try:
        from karmada.kube.client.grpc_library import grpc
    except ImportError as error:
        return ProbeResult(False, missing_grpc("a gRPC probe", error))
    name = service.encode()
    request = b"\x0a" + bytes((len(name),)) + name if name else b""  # HealthCheckRequest{service = 1}
    async with grpc.aio.insecure_channel(f"{host}:{port}") as channel:
        try:
            answer = await channel.unary_unary("/grpc.health.v1.Health/Check")(request)
        except grpc.aio.AioRpcError as error:
            return ProbeResult(False, f"service unhealthy: {error.details()}")
    serving = answer == b"\x08\x01"  # HealthCheckResponse{status = SERVING}
    return ProbeResult(serving, "" if serving else "service unhealthy (responded with other than SERVING)")


class Prober:
    """The probes of one run of a container."""

    def __init__(self, target: Target, emit: Emit, changed: Callable[[], None], restart: Callable[[], None]) -> None:
        self._target = target
        self._emit = emit
        self._changed = changed
        self._restart = restart
        container = target.container
        self.started = not container.get("startupProbe")
        self.ready = self.started and not container.get("readinessProbe")

    async def run(self) -> None:
        container = self._target.container
        if container.get("startupProbe") and not await self._start_up(container["startupProbe"]):
            return
        kinds: tuple[Kind, ...] = ("readinessProbe", "livenessProbe")
        probing = [asyncio.create_task(self._repeat(kind, container[kind])) for kind in kinds if container.get(kind)]
        try:
            await asyncio.gather(*probing)
        finally:
            await cancel_and_wait(*probing)

    async def _start_up(self, wanted: Obj) -> bool:
        streak = Streak(Timing.of(wanted), False)
        await asyncio.sleep(streak.timing.initial_delay)
        while True:
            if await self._once("startupProbe", wanted, streak):
                break
            await asyncio.sleep(streak.timing.period)
        if not streak.verdict:
            self._give_up("startup")
            return False
        self.started = True
        self.ready = not self._target.container.get("readinessProbe")
        self._changed()
        return True

    async def _repeat(self, kind: Kind, wanted: Obj) -> None:
        streak = Streak(Timing.of(wanted), kind == "livenessProbe")
        await asyncio.sleep(streak.timing.initial_delay)
        while True:
            if await self._once(kind, wanted, streak) and not self._took(kind, streak.verdict):
                return
            await asyncio.sleep(streak.timing.period)

    def _took(self, kind: Kind, verdict: bool) -> bool:
        """Return whether probing goes on after a threshold was reached."""
        if kind == "readinessProbe":
            if self.ready != verdict:
                self.ready = verdict
                self._changed()
        elif not verdict:
            self._give_up("liveness")
            return False
        return True

    async def _once(self, kind: Kind, wanted: Obj, streak: Streak) -> bool:
        result = await probe(self._target, wanted, streak.timing.timeout)
        if not result.passed:
            self._emit(WARNING, "Unhealthy", f"{title(kind)} probe failed: {result.output[:_BODY_BYTES]}")
        return streak.add(result.passed)

    def _give_up(self, what: str) -> None:
        name = self._target.container["name"]
        self._emit(NORMAL, "Killing", f"Container {name} failed {what} probe, will be restarted")
        self._restart()
