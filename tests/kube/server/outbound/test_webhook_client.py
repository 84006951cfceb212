from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from karmada.kube.server.addresses.service_routing import Address, ServiceRouter, Unroutable
from karmada.kube.server.outbound.webhooks import (
    MAX_ANSWER,
    WebhookCallFailed,
    WebhookClient,
    parse_answer,
    unexpected_answer,
)
from tests.support.cases import cases
from tests.support.eventually import LIMIT
from tests.support.tls_backend import State, TlsBackend, authority, endpoint_slice, service, serving


def bundle(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


CA = bundle(authority().cert_pem)


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
async def client(state: State) -> AsyncIterator[WebhookClient]:
    client = WebhookClient(ServiceRouter(state))
    yield client
    await client.close()


@pytest.fixture
async def backend() -> AsyncIterator[TlsBackend]:
    async with TlsBackend() as backend:
        yield backend


async def echo(raw: web.BaseRequest) -> web.Response:
    return web.json_response({"path": raw.path_qs, "host": raw.host, "body": (await raw.read()).decode()})


async def test_a_url_is_posted_to_with_the_timeout_in_its_query(client: WebhookClient, backend: TlsBackend) -> None:
    backend.handler = echo
    config = {"url": f"https://127.0.0.1:{backend.port}/check", "caBundle": CA}
    seen = parse_answer(await client.call(config, b'{"a":1}', timeout=LIMIT))
    assert seen["path"] == "/check?timeout=2m0s"
    assert seen["body"] == '{"a":1}'


async def test_a_service_is_called_by_its_own_name_at_the_address_of_its_endpoint(
    client: WebhookClient, backend: TlsBackend, state: State
) -> None:
    backend.handler = echo
    state.put(service("hook", "tools", type="ClusterIP", clusterIP="10.0.0.1", ports=[{"port": 443}]))
    state.put(endpoint_slice("hook", "tools", backend.port))
    config = {"service": {"namespace": "tools", "name": "hook", "path": "/mutate"}, "caBundle": CA}
    seen = parse_answer(await client.call(config, b"{}", timeout=LIMIT))
    assert seen["path"] == "/mutate?timeout=2m0s"
    assert seen["host"] == "hook.tools.svc:443"


async def test_connections_are_kept_and_used_again(client: WebhookClient, backend: TlsBackend) -> None:
    backend.handler = echo
    config = {"url": f"https://127.0.0.1:{backend.port}/", "caBundle": CA}
    for _ in range(3):
        await client.call(config, b"{}", timeout=LIMIT)
    assert len(backend.connections) == 1


async def failure(client: WebhookClient, config: dict[str, Any], timeout: float = LIMIT) -> str:
    with pytest.raises(WebhookCallFailed) as caught:
        await client.call(config, b"{}", timeout=timeout)
    return str(caught.value)


async def test_a_webhook_that_is_too_slow_exceeds_the_deadline(client: WebhookClient, backend: TlsBackend) -> None:
    async def hang(_raw: web.BaseRequest) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    backend.handler = hang
    url = f"https://127.0.0.1:{backend.port}/slow"
    text = await failure(client, {"url": url, "caBundle": CA}, 0.05)
    assert text == f'Post "{url}?timeout=50ms": context deadline exceeded'


async def test_of_an_answer_without_end_no_more_is_read_than_an_answer_may_have(
    client: WebhookClient, backend: TlsBackend
) -> None:
    piece, sent = bytes(1 << 16), 0

    async def pour(raw: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(raw)
        while True:
            await response.write(piece)
            sent += len(piece)

    backend.handler = pour
    url = f"https://127.0.0.1:{backend.port}/"
    text = await failure(client, {"url": url, "caBundle": CA})
    assert text.endswith(": the response is larger than 6 MB")
    assert MAX_ANSWER <= sent + len(piece) < 3 * MAX_ANSWER


async def test_a_closed_port_refuses_the_connection(client: WebhookClient) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        text = await failure(client, {"url": f"https://127.0.0.1:{port}", "caBundle": CA})
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert text == f'Post "https://127.0.0.1:{port}/?timeout=2m0s": {refused}'


async def test_a_certificate_of_another_authority_is_not_believed(client: WebhookClient, backend: TlsBackend) -> None:
    config = {"url": f"https://127.0.0.1:{backend.port}/", "caBundle": bundle(authority("others").cert_pem)}
    text = await failure(client, config)
    assert text.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")


async def test_a_certificate_for_another_name_is_not_believed(client: WebhookClient) -> None:
    async with TlsBackend(serving("elsewhere.example")) as backend:
        text = await failure(client, {"url": f"https://127.0.0.1:{backend.port}/", "caBundle": CA})
    assert text.endswith("x509: certificate is not valid for 127.0.0.1")


async def test_a_bundle_without_certificates_is_reported_as_such(client: WebhookClient) -> None:
    text = await failure(client, {"url": "https://127.0.0.1:1/", "caBundle": bundle(b"nonsense")})
    assert "unable to load root certificates" in text


async def test_a_host_that_does_not_exist_is_reported_as_such(client: WebhookClient) -> None:
    text = await failure(client, {"url": "https://nowhere.invalid/x", "caBundle": CA})
    assert text == 'Post "https://nowhere.invalid/x?timeout=2m0s": dial tcp: lookup nowhere.invalid: no such host'


async def test_an_error_answer_is_reported_by_its_status_or_its_text(
    client: WebhookClient, backend: TlsBackend
) -> None:
    async def broken(_raw: web.BaseRequest) -> web.Response:
        return web.Response(text="boom", status=500)

    backend.handler = broken
    text = await failure(client, {"url": f"https://127.0.0.1:{backend.port}/", "caBundle": CA})
    assert text == 'an error on the server ("boom") has prevented the request from succeeding'


@cases(
    (404, b"404 page not found\n", "the server could not find the requested resource"),
    (400, b"", "the server rejected our request for an unknown reason"),
    (503, b"", "the server is currently unable to handle the request"),
    (500, b"", 'an error on the server ("unknown") has prevented the request from succeeding'),
    (403, b"go away", "go away"),
    (418, b"", "the server responded with the status code 418 but did not return more information"),
    (500, b'{"kind":"Status","message":"out of cheese"}', "out of cheese"),
)
def test_unexpected_responses_are_reported_as_clients_do(status: int, body: bytes, text: str) -> None:
    assert unexpected_answer(status, body) == text


@cases(b"", b"not json", b"[1]", b'"text"')
def test_an_answer_that_is_no_json_object_is_a_failed_call(answer: bytes) -> None:
    with pytest.raises(WebhookCallFailed, match="couldn't get version/kind; json parse error"):
        parse_answer(answer)


# services


async def test_an_external_name_is_dialled_as_it_is(state: State) -> None:
    state.put(service("hook", "tools", type="ExternalName", externalName="hooks.example"))
    assert await ServiceRouter(state).resolve("tools", "hook", 8443) == Address("hooks.example", 8443)


async def test_a_service_without_endpoint_objects_is_dialled_at_its_cluster_ip(state: State) -> None:
    state.put(service("hook", "tools", type="ClusterIP", clusterIP="10.0.0.7", ports=[{"port": 443}]))
    assert await ServiceRouter(state).resolve("tools", "hook", 443) == Address("10.0.0.7", 443)


async def test_endpoints_are_used_where_there_are_no_slices(state: State) -> None:
    state.put(service("hook", "tools", clusterIP="10.0.0.7", ports=[{"name": "web", "port": 443}, {"port": 80}]))
    meta = {"name": "hook", "namespace": "tools"}
    ports = [{"name": "metrics", "port": 9}, {"name": "web", "port": 9443}]
    subsets = [{"addresses": [{"ip": "10.1.1.1"}], "ports": ports}]
    state.put({"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets})
    assert await ServiceRouter(state).resolve("tools", "hook", 443) == Address("10.1.1.1", 9443)


@cases(
    ([], 443, 'service "hook" not found'),
    ([service("hook", "tools", clusterIP="None", ports=[{"port": 443}])], 443,
     'no endpoints available for service "hook"'),
    ([service("hook", "tools", clusterIP="10.0.0.7", ports=[{"port": 443}])], 444,
     'no service port 444 found for service "hook"'),
    ([service("hook", "tools", clusterIP="10.0.0.7", ports=[{"port": 443}]),
      endpoint_slice("hook", "tools", 9443, ready=False)], 443, 'no endpoints available for service "hook"'),
)  # fmt: skip
async def test_a_service_that_leads_nowhere_says_why(objects: list[Any], port: int, text: str, state: State) -> None:
    for obj in objects:
        state.put(obj)
    with pytest.raises(Unroutable) as caught:
        await ServiceRouter(state).resolve("tools", "hook", port)
    assert str(caught.value) == text


async def test_a_missing_service_shows_in_the_failure_of_the_call(client: WebhookClient) -> None:
    config = {"service": {"namespace": "tools", "name": "hook", "path": "/m", "port": 8443}, "caBundle": CA}
    text = await failure(client, config)
    assert text == 'Post "https://hook.tools.svc:8443/m?timeout=2m0s": service "hook" not found'
