from __future__ import annotations

import asyncio
import json
import ssl
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from karmada.kube.client.client import Client
from karmada.kube.client.config import ExecConfig, Impersonation, Material
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import NotFound, ServiceUnavailable, TooManyRequests, Unauthorized
from karmada.kube.objects.gvrs import CONFIG_MAPS
from tests.support.certificates import Authority
from tests.support.eventually import LIMIT
from tests.support.fake_api import FakeApi, application

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[..., Awaitable[str]]
Open = Callable[..., HttpTransport]


async def echo(request: web.Request) -> web.Response:
    headers = [[key, value] for key, value in request.headers.items()]
    return web.json_response({"headers": headers, "path": request.raw_path})


def headers_of(answer: Any, name: str) -> list[str]:
    return [value for key, value in answer["headers"] if key.lower() == name.lower()]


GET = Call("GET", "/x")


# identity


async def test_tokens_impersonation_and_agent_travel_as_headers(serve: Serve, connect: Open) -> None:
    impersonate = Impersonation("jane", "7", ("dev", "ops"), {"scopes.example/x": ("a", "b")})
    transport = connect(await serve(echo), token="secret", impersonate=impersonate, user_agent="controller/v1")
    answer = await transport.call(GET)
    assert headers_of(answer, "Authorization") == ["Bearer secret"]
    assert headers_of(answer, "Impersonate-User") == ["jane"]
    assert headers_of(answer, "Impersonate-Uid") == ["7"]
    assert headers_of(answer, "Impersonate-Group") == ["dev", "ops"]
    assert headers_of(answer, "Impersonate-Extra-scopes.example%2Fx") == ["a", "b"]
    assert headers_of(answer, "User-Agent")[0].startswith("controller/v1 (")


async def test_a_server_url_may_have_a_path(serve: Serve, connect: Open) -> None:
    transport = connect(await serve(echo) + "k8s/clusters/c-1/")
    answer = await transport.call(Call("GET", "/api/v1/pods", {"labelSelector": "a=b,c"}))
    assert answer["path"] == "/k8s/clusters/c-1/api/v1/pods?labelSelector=a%3Db%2Cc"


async def test_a_token_file_is_read_again_when_it_changes(serve: Serve, connect: Open, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    transport = connect(await serve(echo), token_file=str(token), token="fallback")
    assert headers_of(await transport.call(GET), "Authorization") == ["Bearer one"]
    token.write_text("two-longer")
    assert headers_of(await transport.call(GET), "Authorization") == ["Bearer two-longer"]


async def test_basic_authentication_works(serve: Serve, connect: Open) -> None:
    transport = connect(await serve(echo), username="u", password="p")
    assert headers_of(await transport.call(GET), "Authorization") == ["Basic dTpw"]


def plugin(path: Path, status: dict[str, Any]) -> ExecConfig:
    """A plug-in that counts its runs in a file and says which run its token is from."""
    script = path / "plugin"
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib\n"
        f"runs = pathlib.Path({str(path / 'runs')!r})\n"
        "count = len(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text('x' * count)\n"
        f"pathlib.Path({str(path / 'info')!r}).write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
        f"answer = json.loads({json.dumps(json.dumps(answer))})\n"
        "answer['status']['token'] += str(count) + os.environ.get('SUFFIX', '')\n"
        "print(json.dumps(answer))\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return ExecConfig(str(script), "client.authentication.k8s.io/v1", env={"SUFFIX": "!"}, provide_cluster_info=True)


async def test_a_plug_in_runs_once_until_its_answer_expires(
    serve: Serve, connect: Open, tmp_path: Path, clock: FakeClock
) -> None:
    config = plugin(tmp_path, {"token": "t", "expirationTimestamp": "2023-11-14T22:23:20Z"})
    server = await serve(echo)
    transport = connect(server, exec=config, clock=clock)
    answers = await asyncio.gather(*(transport.call(GET) for _ in range(3)))
    assert [headers_of(a, "Authorization") for a in answers] == [["Bearer t1!"]] * 3
    await clock.advance(minutes=10)
    assert headers_of(await transport.call(GET), "Authorization") == ["Bearer t2!"]
    info = json.loads((tmp_path / "info").read_text())
    assert info["kind"] == "ExecCredential"
    assert info["spec"]["cluster"]["server"] == server


async def test_a_plug_in_is_called_again_when_the_server_refuses_its_token(
    serve: Serve, connect: Open, tmp_path: Path
) -> None:
    async def picky(request: web.Request) -> web.Response:
        if request.headers["Authorization"] == "Bearer t1!":
            return web.json_response(Unauthorized().status(), status=401)
        return await echo(request)

    transport = connect(await serve(picky), exec=plugin(tmp_path, {"token": "t"}))
    assert headers_of(await transport.call(GET), "Authorization") == ["Bearer t2!"]


async def test_a_plug_in_that_cannot_run_says_why_and_how_to_get_it(serve: Serve, connect: Open) -> None:
    config = ExecConfig("/nowhere/plugin", "client.authentication.k8s.io/v1", install_hint="get it at example.io")
    transport = connect(await serve(echo), exec=config)
    with pytest.raises(ConnectionFailed, match=r"(?s)/nowhere/plugin: No such file.*get it at example\.io"):
        await transport.call(GET)


# TLS


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def server_context(authority: Authority, tmp_path: Path, *names: str, clients: bool = False) -> ssl.SSLContext:
    pair = authority.issue("server", list(names))
    path = tmp_path / "server.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem.decode())
    return context


async def test_the_server_must_show_a_certificate_of_the_authority(
    serve: Serve, connect: Open, authority: Authority, tmp_path: Path
) -> None:
    server = await serve(echo, server_context(authority, tmp_path, "127.0.0.1"))
    assert await connect(server, ca=Material(authority.pem)).call(GET)
    with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY_FAILED"):
        await connect(server, ca=Material(Authority().pem)).call(GET)
    assert await connect(server, insecure=True).call(GET)


async def test_the_server_name_can_be_given(serve: Serve, connect: Open, authority: Authority, tmp_path: Path) -> None:
    server = await serve(echo, server_context(authority, tmp_path, "api.example"))
    with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY_FAILED"):
        await connect(server, ca=Material(authority.pem)).call(GET)
    assert await connect(server, ca=Material(authority.pem), tls_server_name="api.example").call(GET)


async def test_a_client_certificate_is_used_and_followed_when_its_file_changes(
    serve: Serve, connect: Open, authority: Authority, tmp_path: Path
) -> None:
    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        return web.json_response({"cn": peer["subject"][0][0][1]})

    server = await serve(who, server_context(authority, tmp_path, "127.0.0.1", clients=True))
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def issue(name: str) -> None:
        pair = authority.issue(name)
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)

    issue("jane")
    transport = connect(
        server,
        ca=Material(authority.pem),
        certificate=Material(path=str(certificate)),
        key=Material(path=str(key)),
    )
    assert await transport.call(GET) == {"cn": "jane"}
    issue("joanna")
    assert await transport.call(GET) == {"cn": "joanna"}


# failures


async def test_a_busy_server_is_retried_after_its_retry_after(serve: Serve, connect: Open, clock: FakeClock) -> None:
    requested: list[float] = []

    async def busy(request: web.Request) -> web.Response:
        requested.append(clock.monotonic())
        if len(requested) < 3:
            return web.json_response(TooManyRequests("busy").status(), status=429, headers={"Retry-After": "2"})
        return web.json_response({"body": await request.json()})

    transport = connect(await serve(busy), clock=clock)
    call = asyncio.ensure_future(transport.call(Call("POST", "/x", body={"a": 1})))
    while not call.done():
        await asyncio.sleep(0.001)
        await clock.advance(0.5)
    assert await call == {"body": {"a": 1}}
    assert requested[1] - requested[0] >= 2
    assert requested[2] - requested[1] >= 2


async def test_without_retry_after_a_refusal_is_final(serve: Serve, connect: Open) -> None:
    count = 0

    async def down(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return web.Response(status=503, text="no backend")

    with pytest.raises(ServiceUnavailable, match="currently unable"):
        await connect(await serve(down)).call(GET)
    assert count == 1


async def test_it_does_not_prompt_forever(serve: Serve, connect: Open) -> None:
    count = 0

    async def busy(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return web.json_response({}, status=429, headers={"Retry-After": "0"})

    transport = connect(await serve(busy))
    with pytest.raises(TooManyRequests) as caught:
        await transport.call(GET)
    assert count == 11
    assert caught.value.retry_after == 0
    with pytest.raises(TooManyRequests):
        await transport.call(GET._replace(retried=False))
    assert count == 12


async def test_an_answer_that_is_no_status_is_reported_by_its_code(serve: Serve, connect: Open) -> None:
    async def plain(request: web.Request) -> web.Response:
        return web.Response(status=404, text="404 page not found\n")

    with pytest.raises(NotFound, match=r"^the server could not find the requested resource$"):
        await connect(await serve(plain)).call(GET)


async def test_a_server_that_is_not_there_is_a_failed_connection(connect: Open) -> None:
    transport = connect("http://127.0.0.1:1")
    with pytest.raises(ConnectionFailed, match=r"^http://127\.0\.0\.1:1: "):
        await transport.call(GET)
    with pytest.raises(ConnectionFailed):
        await anext(transport.watch(Call("GET", "/x")))


async def test_a_silent_server_is_given_up_and_counts_as_overloaded(serve: Serve, connect: Open) -> None:
    async def silent(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    transport = connect(await serve(silent), timeout=0.05)
    before = transport.limiter.limit
    with pytest.raises(ConnectionFailed, match=r"no response within 0\.05s"):
        await transport.call(GET)
    assert transport.limiter.limit < before
    assert transport.limiter.in_flight == 0


async def test_text_comes_back_as_text_and_nothing_as_none(serve: Serve, connect: Open) -> None:
    async def text(request: web.Request) -> web.Response:
        return web.Response(text="ok") if request.path == "/healthz" else web.Response(status=204)

    transport = connect(await serve(text))
    assert await transport.call(Call("GET", "/healthz")) == "ok"
    assert await transport.call(GET) is None


async def test_compressed_answers_are_understood_and_can_be_declined(serve: Serve, connect: Open) -> None:
    async def compressed(request: web.Request) -> web.Response:
        response = web.json_response({"x": "y" * 10_000, "accepted": request.headers["Accept-Encoding"]})
        response.enable_compression()
        return response

    server = await serve(compressed)
    assert (await connect(server).call(GET))["accepted"] == "gzip"
    assert (await connect(server, disable_compression=True).call(GET))["accepted"] == "identity"


# streams


async def test_a_watch_that_breaks_is_a_failed_connection(serve: Serve, connect: Open, fake: FakeApi) -> None:
    client = Client(connect(await serve(application(fake))))
    obj = await client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "ns"}})
    stream = await client.watch(CONFIG_MAPS, resource_version="10")
    assert (await anext(stream)).object == obj
    fake.break_watches()
    with pytest.raises(ConnectionFailed):
        await anext(stream)


async def test_closing_a_watch_cancels_it_at_the_server(serve: Serve, connect: Open, fake: FakeApi) -> None:
    client = Client(connect(await serve(application(fake))))
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "ns"}})
    stream = await client.watch(CONFIG_MAPS, resource_version="10")
    await anext(stream)
    assert len(fake.watchers) == 1
    await stream.aclose()  # type: ignore[attr-defined]
    async with asyncio.timeout(LIMIT):
        while fake.watchers:
            await client.create(CONFIG_MAPS, {"metadata": {"generateName": "b", "namespace": "ns"}})


async def test_closing_ends_a_watch_that_waits(serve: Serve, connect: Open, fake: FakeApi) -> None:
    transport = connect(await serve(application(fake)))
    client = Client(transport)
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "ns"}})
    stream = await client.watch(CONFIG_MAPS, resource_version="10")
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await transport.close()
    with pytest.raises(ConnectionFailed, match="closed on this side"):
        await asyncio.wait_for(waiting, 30)
    with pytest.raises(ConnectionFailed, match="closed on this side"):
        await client.list(CONFIG_MAPS)


async def test_events_are_put_together_from_any_pieces(serve: Serve, connect: Open) -> None:
    lines = [json.dumps({"type": "ADDED", "object": {"n": n, "pad": "x" * 5000}}).encode() + b"\n" for n in range(3)]
    body = b"".join(lines)

    async def pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(body), 777):
            await response.write(body[start : start + 777])
        return response

    transport = connect(await serve(pieces))
    assert [event.object["n"] async for event in transport.watch(Call("GET", "/x"))] == [0, 1, 2]


async def test_logs_stream_as_they_come(serve: Serve, connect: Open) -> None:
    async def logs(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in (b"one\n", b"two\n"):
            await response.write(line)
        return response

    transport = connect(await serve(logs))
    assert b"".join([piece async for piece in transport.stream(Call("GET", "/log"))]) == b"one\ntwo\n"
