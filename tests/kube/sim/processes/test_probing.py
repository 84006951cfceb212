"""Probes, each made against something that is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio  # type: ignore[import-untyped]

from karmada.kube.objects.types import Obj
from karmada.kube.sim.processes.probing import ProbeResult, Target, port_number, probe
from tests.support.cases import cases

CONTAINER: Obj = {"name": "c", "ports": [{"name": "web", "containerPort": 8080}]}


async def no_command(command: list[str], seconds: float) -> ProbeResult:
    raise AssertionError(f"{command} for {seconds}")


@asynccontextmanager
async def serving(respond: Callable[[bytes], Awaitable[bytes]]) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await respond(await reader.readuntil(b"\r\n\r\n")))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def made(wanted: Obj, run: Any = no_command, seconds: float = 10.0) -> ProbeResult:
    return await probe(Target(CONTAINER, "127.0.0.1", run), wanted, seconds)


@cases(
    (200, ProbeResult(True)),
    (302, ProbeResult(True)),
    (404, ProbeResult(False, "HTTP probe failed with statuscode: 404")),
    (503, ProbeResult(False, "HTTP probe failed with statuscode: 503")),
)
async def test_an_http_probe_judges_by_the_status(status: int, expected: ProbeResult) -> None:
    heads: list[bytes] = []

    async def respond(head: bytes) -> bytes:
        heads.append(head)
        return f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n".encode()

    headers = [{"name": "X-Wanted", "value": "yes"}]
    async with serving(respond) as port:
        assert await made({"httpGet": {"port": port, "path": "healthz", "httpHeaders": headers}}) == expected
    assert heads[0].startswith(b"GET /healthz HTTP/1.1\r\n")
    assert b"X-Wanted: yes\r\n" in heads[0]


async def test_a_probe_that_takes_too_long_has_failed() -> None:
    async def respond(_head: bytes) -> bytes:
        await asyncio.sleep(60)
        return b""

    async with serving(respond) as port:
        result = await made({"httpGet": {"port": port}}, seconds=0.05)
    assert result == ProbeResult(False, "probe timed out after 0.05s")


async def test_a_response_that_is_no_http_has_failed() -> None:
    async def respond(_head: bytes) -> bytes:
        return b"hello\r\n\r\n"

    async with serving(respond) as port:
        assert not (await made({"httpGet": {"port": port}})).passed


@cases("tcpSocket", "httpGet")
async def test_a_port_at_which_nobody_listens_is_named(kind: str) -> None:
    async with serving(no_response) as port:
        pass
    result = await made({kind: {"port": port}})
    assert not result.passed
    assert f"dial tcp 127.0.0.1:{port}: connect: connection refused" in result.output


async def no_response(_head: bytes) -> bytes:
    return b""


async def test_a_tcp_probe_only_connects() -> None:
    async with serving(no_response) as port:
        assert await made({"tcpSocket": {"port": port, "host": "localhost"}}) == ProbeResult(True)


async def test_an_exec_probe_runs_the_command_in_the_container() -> None:
    async def run(command: list[str], seconds: float) -> ProbeResult:
        return ProbeResult(command == ["check", "it"] and seconds == 10.0, "said")

    assert await made({"exec": {"command": ["check", "it"]}}, run) == ProbeResult(True, "said")


@cases((b"\x08\x01", True), (b"\x08\x02", False), (b"", False))
async def test_a_grpc_probe_calls_the_health_service(answer: bytes, passed: bool) -> None:
    requests: list[bytes] = []

    async def check(request: bytes, _context: Any) -> bytes:
        requests.append(request)
        return answer

    server = grpc.aio.server()
    handlers = {"Check": grpc.unary_unary_rpc_method_handler(check)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        assert (await made({"grpc": {"port": port, "service": "liveness"}})).passed is passed
    finally:
        await server.stop(None)
    assert requests == [b"\x0a\x08liveness"]


async def test_a_grpc_probe_of_a_port_at_which_nobody_listens_has_failed() -> None:
    async with serving(no_response) as port:
        pass
    result = await made({"grpc": {"port": port}})
    assert not result.passed
    assert result.output


@cases((80, 80), ("80", 80), ("web", 8080), ("other", 0))
def test_a_port_is_given_by_number_or_by_name(port: int | str, expected: int) -> None:
    assert port_number(CONTAINER, port) == expected
