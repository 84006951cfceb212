"""What a server can do to its client: nothing but fail."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from karmada.kube.client import responses
from karmada.kube.client.client import Client
from karmada.kube.client.config import Material
from karmada.kube.client.discovery import discover
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.limits import KB, MB, PROBE_BYTES
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ApiError, ServiceUnavailable, TooManyRequests
from karmada.kube.objects.gvrs import PODS
from tests.support.cases import cases

Serve = Callable[..., Awaitable[str]]
Open = Callable[..., HttpTransport]
GET = Call("GET", "/x")


def endless(sent: list[int], piece: bytes = bytes(64 * KB)) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(piece)
                sent.append(len(piece))
        return response

    return handle


# bodies


async def test_an_endless_page_is_given_up_at_its_limit(serve: Serve, connect: Open) -> None:
    sent: list[int] = []
    transport = connect(await serve(endless(sent)))
    with pytest.raises(ConnectionFailed, match="the response is larger than 64 KB"):
        await transport.answer(Call("GET", "/readyz", most=PROBE_BYTES))
    assert sum(sent) < 32 * MB


async def test_an_endless_answer_is_given_up_at_its_limit(serve: Serve, connect: Open) -> None:
    transport = connect(await serve(endless([])))
    with pytest.raises(ConnectionFailed, match="the response is larger than 16 MB"):
        await transport.call(GET)


async def test_an_endless_refusal_of_a_watch_is_given_up(serve: Serve, connect: Open) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=403)
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(bytes(MB))
        return response

    with pytest.raises(ConnectionFailed, match="the response is larger than 16 MB"):
        await anext(connect(await serve(refuse)).watch(GET))


async def test_what_counts_is_the_size_after_decompression(serve: Serve, connect: Open) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(MB)) for _ in range(40)) + packer.flush()
    assert len(bomb) < PROBE_BYTES

    async def explode(_request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})

    transport = connect(await serve(explode))
    with pytest.raises(ConnectionFailed, match="the response is larger than 64 KB"):
        await transport.answer(Call("GET", "/readyz", most=PROBE_BYTES))
    with pytest.raises(ConnectionFailed, match="the response is larger than 16 MB"):
        await transport.call(GET)


async def test_a_list_may_be_larger_than_an_object(serve: Serve, connect: Open) -> None:
    big = "x" * (17 * MB)

    async def answer(_request: web.Request) -> web.Response:
        items = [{"metadata": {"name": "a", "annotations": {"big": big}}}]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    client = Client(connect(await serve(answer)))
    assert len((await client.list(PODS))["items"]) == 1
    with pytest.raises(ConnectionFailed, match="16 MB"):
        await client.get(PODS, "a", "default")


async def test_an_event_without_an_end_is_given_up(serve: Serve, connect: Open) -> None:
    transport = connect(await serve(endless([], b'{"type": "' * 6554)))
    with pytest.raises(ConnectionFailed, match="an event of the watch is larger than 16 MB"):
        await anext(transport.watch(GET))


@cases(b"<html>", b"5", b"[]", b"{}", b'{"type": "ADDED", "object": 5}', b'{"type": "ERROR", "object": {"code": "x"}}')
async def test_what_is_no_event_breaks_the_watch(line: bytes, serve: Serve, connect: Open) -> None:
    async def babble(_request: web.Request) -> web.Response:
        return web.Response(body=line + b"\n")

    with pytest.raises(ConnectionFailed, match="what is no event"):
        await anext(connect(await serve(babble)).watch(GET))


@cases(b"{", b'{"items": 5}', b'{"items": [{"metadata": {}}, 5], "kind": "PodList"}')
async def test_what_is_not_what_it_says_is_a_failed_connection(body: bytes, serve: Serve, connect: Open) -> None:
    async def babble(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    with pytest.raises(ConnectionFailed):
        await connect(await serve(babble)).call(GET)


@cases({"code": "x"}, {"code": []}, {"details": 5}, {"details": [1]}, {"metadata": "x"}, {"reason": 5})
async def test_a_status_that_makes_no_sense_counts_by_its_code(
    status: dict[str, Any], serve: Serve, connect: Open
) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", **status}, status=503)

    with pytest.raises(ServiceUnavailable):
        await connect(await serve(refuse)).call(GET)


# pauses


async def busy_attempts(
    serve: Serve, connect: Open, clock: FakeClock, after: str, **config: Any
) -> tuple[list[float], Any]:
    """When requests to a server that always answers Retry-After were made, and how that ended."""
    requested: list[float] = []

    async def later(_request: web.Request) -> web.Response:
        requested.append(clock.monotonic())
        return web.json_response({}, status=429, headers={"Retry-After": after})

    transport = connect(await serve(later), clock=clock, **config)
    call = asyncio.ensure_future(transport.call(GET))
    while not call.done():
        await asyncio.sleep(0.001)
        if clock.next_due() is not None:  # not while a request is under way, which takes its own time
            await clock.advance(1.0)
    return [moment - requested[0] for moment in requested], call.exception()


async def test_no_server_makes_its_client_sleep_for_a_day(serve: Serve, connect: Open, clock: FakeClock) -> None:
    requested, ended = await busy_attempts(serve, connect, clock, "86400", timeout=50.0)
    assert isinstance(ended, TooManyRequests)
    assert len(requested) == 2
    assert 30 <= requested[1] <= 50


async def test_a_call_is_sent_again_only_within_its_time_out(serve: Serve, connect: Open, clock: FakeClock) -> None:
    requested, ended = await busy_attempts(serve, connect, clock, "9", timeout=20.0)
    assert isinstance(ended, TooManyRequests)
    assert requested[-1] <= 20
    assert len(requested) in (2, 3)


async def test_a_call_without_time_out_is_not_sent_again_forever(serve: Serve, connect: Open, clock: FakeClock) -> None:
    requested, ended = await busy_attempts(serve, connect, clock, "25", timeout=0)
    assert isinstance(ended, TooManyRequests)
    assert requested[-1] <= responses.RETRY_SECONDS
    assert len(requested) in (2, 3)


@cases("²", "9" * 400, "1e9", "-5", "Wed, 21 Oct 2015 07:28:00 GMT")
async def test_a_pause_that_is_no_number_of_seconds_is_none(value: str, serve: Serve, connect: Open) -> None:
    async def later(_request: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": value})

    with pytest.raises(TooManyRequests):
        await connect(await serve(later)).call(GET)


# redirects


async def test_no_request_goes_where_a_server_points(serve: Serve, connect: Open) -> None:
    reached: list[str] = []

    async def inside(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.json_response({})

    target = await serve(inside)

    async def point(_request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"{target}internal?x=1")

    transport = connect(await serve(point), token="secret")
    host = target.removeprefix("http://").rstrip("/")
    for method, body in (("GET", None), ("POST", {"a": 1})):
        with pytest.raises(ConnectionFailed, match=f"with 307 and points to {host}; redirects are not followed"):
            await transport.call(Call(method, "/x", body=body))
    with pytest.raises(ConnectionFailed, match=host):
        await anext(transport.watch(GET))
    with pytest.raises(ConnectionFailed, match=host):
        await transport.connect("/x", (), ("v5.channel.k8s.io",))
    assert (await transport.answer(GET)).status == 307
    assert reached == []


# settings that cannot be used


@cases(
    {"server": "https://[bad"},
    {"server": "https://host:port"},
    {"server": "https://127.0.0.1:1", "ca": Material(b"\x30\x82\xff\xfe\x00")},
    {"server": "https://127.0.0.1:1", "ca": Material(b"no certificate")},
    {"server": "https://127.0.0.1:1", "certificate": Material(b"x"), "key": Material(b"y"), "insecure": True},
    {"server": "http://127.0.0.1:1", "token": "two\nlines"},
    {"server": "http://127.0.0.1:1", "token": "a\udcffb"},
    {"server": "http://127.0.0.1:1", "proxy_url": "socks5://:99999999"},
)
async def test_settings_that_cannot_be_used_are_a_failed_connection(config: dict[str, Any], connect: Open) -> None:
    transport = connect(**config)
    with pytest.raises(ConnectionFailed) as caught:
        await transport.call(GET)
    assert "lines" not in str(caught.value)
    with pytest.raises(ConnectionFailed):
        await transport.answer(GET)
    with pytest.raises(ConnectionFailed):
        await anext(transport.watch(GET))
    with pytest.raises(ConnectionFailed):
        await transport.connect("/x", (), ("v5.channel.k8s.io",))


# servers that are none


async def login_page(_request: web.Request) -> web.Response:
    return web.Response(text="<html>Please log in</html>", content_type="text/html")


async def test_a_page_for_people_is_no_object(serve: Serve, connect: Open) -> None:
    client = Client(connect(await serve(login_page)))
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
    for calling in (
        client.get(PODS, "a", "b"),
        client.list(PODS),
        client.list_all(PODS),
        client.create(PODS, obj),
        client.update(PODS, obj),
        client.patch(PODS, "a", "b", {}),
        client.create_subresource(PODS, "a", "b", "eviction", {}),
    ):
        with pytest.raises(ConnectionFailed, match="what is no object"):
            await calling


GROUPS = "APIGroupDiscoveryList"


@cases(
    "text",
    {"kind": GROUPS},
    {"kind": GROUPS, "items": [5]},
    {"kind": GROUPS, "items": [{"metadata": {"name": "x"}, "versions": [{}]}]},
    {"kind": GROUPS, "items": [{"metadata": 5, "versions": [{"version": "v1"}]}]},
    {"kind": "APIGroupList", "groups": [{}], "versions": 5},
    {"kind": "APIGroupList", "groups": [{"versions": [{}]}]},
)
async def test_discovery_that_makes_no_sense_is_an_error_of_the_server(page: Any, serve: Serve, connect: Open) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(page)

    with pytest.raises((ApiError, ConnectionFailed)):
        await discover(connect(await serve(answer)))
