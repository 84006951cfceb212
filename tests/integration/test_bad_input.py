"""Bodies, paths and callers that are no good: the right error, and nothing stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest

from karmada.kube.server.app import ApiServer
from tests.integration.samples import (
    APPLY,
    CONFIGMAPS,
    DEPLOYMENTS,
    JSON_PATCH,
    MERGE,
    PODS,
    PROTOBUF,
    STRATEGIC,
    WIDGETS,
    YAML,
    configmap,
    crd,
    deployment,
    install,
    ok,
    pod,
    quiet_revision,
    refused,
    revision,
    widget,
)
from tests.support.cases import cases
from tests.support.wire import Answer, Http

LIMIT = 3 * 1024 * 1024
TOO_LARGE = "Request entity too large: limit is 3145728"
BAD_BODIES: list[tuple[str, bytes]] = [
    ("application/json", b""),
    ("application/json", b"{"),
    ("application/json", b'{"metadata":{"name":"c"},}'),
    ("application/json", b'{"metadata":{"name":"c"}} trailing'),
    ("application/json", b"nonsense"),
    ("application/json", b"[]"),
    ("application/json", b"null"),
    ("application/json", b"7"),
    ("application/json", b'"text"'),
    ("application/json", b"\xff\xfe\x00"),
    ("application/json", b'{"metadata":{"name":"\xff"}}'),
    ("application/json", b'{"metadata":' * 5000 + b"1" + b"}" * 5000),
    ("application/json", b"[" * 100_000),
    (YAML, b"a: [1"),
    (YAML, b"a: b: c"),
    (YAML, b"- 1\n- 2\n"),
    (YAML, b"a: &x [*x]"),
    (YAML, b"\x00\x01"),
    (PROTOBUF, b"not protobuf"),
    (PROTOBUF, b"k8s\x00"),
    (PROTOBUF, b"k8s\x00\x0a\xff\xff\xff\xff\xff"),
    (PROTOBUF, b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\xff\xff\xff\xff"),
]


@cases("POST", "PUT")
async def test_a_body_that_cannot_be_read_is_a_bad_request(method: str, http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap("there")), 201)
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/there"
    before = await quiet_revision(http)
    for kind, body in BAD_BODIES:
        answer = await http(method, path, body, content_type=kind)
        assert answer.code in (400, 422), (kind, body[:60], answer.body)
        assert answer.json()["reason"] in ("BadRequest", "Invalid")
        assert await revision(http) == before, (kind, body[:60])


async def test_what_cannot_be_parsed_is_quoted(http: Http) -> None:
    body = b'{"metadata": {"name": "c"}, oops and a lot more'
    status = refused(await http("POST", CONFIGMAPS, body), 400, "BadRequest")
    assert status["message"].startswith("the object provided is unrecognized (must be of type ConfigMap): ")
    assert status["message"].endswith(f"({body[:30].decode()} ...)")


async def test_an_unknown_content_type_is_unsupported(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    before = await quiet_revision(http)
    for kind in (
        "text/plain",
        "application/cbor",
        "application/xml",
        "application/x-www-form-urlencoded",
        MERGE,
        APPLY,
    ):
        for method, path in (("POST", CONFIGMAPS), ("PUT", f"{CONFIGMAPS}/c"), ("DELETE", f"{CONFIGMAPS}/c")):
            status = refused(await http(method, path, b"x", content_type=kind), 415, "UnsupportedMediaType")
            assert status["message"] == (
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            )
    assert await revision(http) == before


async def test_no_content_type_means_json(http: Http, server: ApiServer) -> None:
    answer = await http("POST", CONFIGMAPS, configmap(), headers={"Content-Type": ""})
    ok(answer, 201)


async def test_custom_resources_take_no_protobuf(http: Http) -> None:
    await install(http, crd())
    answer = await http("POST", WIDGETS, b"k8s\x00", content_type=PROTOBUF)
    status = refused(answer, 415, "UnsupportedMediaType")
    assert PROTOBUF not in status["message"]


async def test_another_version_or_kind_is_refused(http: Http) -> None:
    before = await revision(http)
    wrong = deployment() | {"apiVersion": "apps/v1beta1"}
    status = refused(await http("POST", DEPLOYMENTS, wrong), 400, "BadRequest")
    assert status["message"] == (
        "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)"
    )
    status = refused(await http("POST", DEPLOYMENTS, deployment() | {"kind": "StatefulSet"}), 400, "BadRequest")
    assert status["message"].startswith('StatefulSet in version "v1" cannot be handled as a Deployment: ')
    for key in ("apiVersion", "kind"):
        refused(await http("POST", DEPLOYMENTS, deployment() | {key: 7}), 400, "BadRequest")
    assert await revision(http) == before


WRONG_TYPES: list[tuple[str, Any]] = [
    (DEPLOYMENTS, {"metadata": "x"}),
    (DEPLOYMENTS, {"metadata": {"name": 7}}),
    (DEPLOYMENTS, {"metadata": {"name": "x", "labels": ["a"]}}),
    (DEPLOYMENTS, {"metadata": {"name": "x", "labels": {"a": 1}}}),
    (DEPLOYMENTS, {"metadata": {"name": "x", "finalizers": "f"}}),
    (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": []}),
    (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {"replicas": "2"}}),
    (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {"replicas": 1.5}}),
    (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {"replicas": 10**30}}),
    (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {"paused": "yes"}}),
    (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": {}}}}}),
    (DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [1]}}}}),
    (CONFIGMAPS, {"metadata": {"name": "x"}, "data": {"a": 1}}),
    (CONFIGMAPS, {"metadata": {"name": "x"}, "data": []}),
    (CONFIGMAPS, {"metadata": {"name": "x"}, "binaryData": {"a": "not base64!"}}),
    (CONFIGMAPS, {"metadata": {"name": "x", "creationTimestamp": "yesterday"}}),
    (PODS, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": []}}}]}}),
]


async def test_values_of_the_wrong_type_are_refused(http: Http) -> None:
    before = await quiet_revision(http)
    for path, body in WRONG_TYPES:
        refused(await http("POST", path, body), 400, "BadRequest", "cannot be handled as a")
    assert await revision(http) == before


async def test_metadata_of_custom_resources_is_checked_like_any_other(http: Http) -> None:
    await install(http, crd())
    before = await quiet_revision(http)
    wrong: tuple[Any, ...] = (None, "x", [], 7, {"labels": {"a": 1}}, {"name": ["x"]}, {"annotations": "x"})
    for metadata in wrong:
        answer = await http("POST", WIDGETS, widget() | {"metadata": metadata})
        assert answer.code in (400, 422), (metadata, answer.body)
    assert await revision(http) == before


async def test_numbers_are_kept_exactly(http: Http) -> None:
    await install(http, crd())
    big = 2**62 + 1
    created = ok(await http("POST", WIDGETS, widget(spec={"size": 1, "free": {"big": big, "half": 0.5}})), 201)
    assert created["spec"]["free"] == {"big": big, "half": 0.5}
    body = deployment()
    body["spec"]["replicas"] = 3.0
    assert ok(await http("POST", DEPLOYMENTS, body), 201)["spec"]["replicas"] == 3


async def test_null_is_the_same_as_absent(http: Http) -> None:
    body = deployment(labels=None, annotations={})
    body["spec"]["replicas"] = None
    body["spec"]["paused"] = None
    created = ok(await http("POST", DEPLOYMENTS, body), 201)
    assert created["spec"]["replicas"] == 1
    assert "paused" not in created["spec"]
    assert not {"labels", "annotations"} & created["metadata"].keys()


def _padded(size: int) -> bytes:
    """A ConfigMap whose body is exactly `size` bytes, most of it white space."""
    body = b'{"metadata":{"name":"big"}}'
    return body[:-1] + b" " * (size - len(body)) + b"}"


@cases(("POST", "application/json"), ("PUT", YAML), ("PATCH", MERGE), ("PATCH", APPLY), ("DELETE", "application/json"))
async def test_a_body_over_the_limit_is_refused(method: str, kind: str, http: Http) -> None:
    before = await quiet_revision(http)
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/big?fieldManager=m"
    answer = await http(method, path, _padded(LIMIT + 1), content_type=kind)
    status = refused(answer, 413, "RequestEntityTooLarge")
    assert status["message"] == TOO_LARGE
    assert await revision(http) == before


async def test_a_body_just_within_the_limit_is_read(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, _padded(LIMIT)), 201)


async def test_a_chunked_body_over_the_limit_is_refused(http: Http, server: ApiServer) -> None:
    before = await quiet_revision(http)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(5 * 16):
            yield b" " * 65536

    async with http._session.post(
        server.url + CONFIGMAPS, data=endless(), ssl=http._tls, headers={"Content-Type": "application/json"}
    ) as response:
        answer = Answer(response.status, response.headers, await response.read())
    refused(answer, 413, "RequestEntityTooLarge", TOO_LARGE)
    assert await revision(http) == before


async def test_the_server_goes_on_after_a_client_that_hangs_up(http: Http, server: ApiServer) -> None:
    async def half() -> AsyncIterator[bytes]:
        yield b'{"metadata":'
        raise ConnectionResetError

    with pytest.raises((aiohttp.ClientError, ConnectionResetError)):
        await http._session.post(server.url + CONFIGMAPS, data=half(), ssl=http._tls)
    ok(await http("POST", CONFIGMAPS, configmap()), 201)


@cases(
    ("POST", "/api/v1/namespaces/default/wombats", 404, "NotFound"),
    ("PUT", "/api/v1/namespaces/default/configmaps/c/wombat", 404, "NotFound"),
    ("POST", "/api/v1/namespaces/default/configmaps/c/status", 404, "NotFound"),
    ("POST", "/apis/apps/v1/namespaces/default/deployments/d/status", 405, "MethodNotAllowed"),
    ("DELETE", "/apis/apps/v1/namespaces/default/deployments/d/status", 405, "MethodNotAllowed"),
    ("DELETE", "/apis/apps/v1/namespaces/default/deployments/d/scale", 405, "MethodNotAllowed"),
    ("PUT", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x", 405, "MethodNotAllowed"),
    ("POST", "/api/v1/componentstatuses", 405, "MethodNotAllowed"),
    ("POST", "/api/v1/namespaces/default/namespaces", 404, "NotFound"),
    ("POST", "/api/v1/namespaces/default/nodes", 404, "NotFound"),
    ("OPTIONS", "/api/v1/namespaces/default/configmaps", 405, "MethodNotAllowed"),
)
async def test_paths_that_lead_nowhere(method: str, path: str, code: int, reason: str, http: Http) -> None:
    refused(await http(method, path, {"metadata": {"name": "x"}}), code, reason)


async def test_a_group_that_is_not_served_has_no_page(http: Http) -> None:
    answer = await http("POST", "/apis/nobody.io/v1/things", {})
    assert (answer.code, answer.body) == (404, b"404 page not found\n")


@cases("POST", "PUT", "PATCH", "DELETE")
async def test_nobody_without_rights_writes_anything(method: str, http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap("there")), 201)
    before = await quiet_revision(http)
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/there"
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]
    name = "" if method == "POST" else ' "there"'
    status = refused(
        await http(method, path, configmap("there"), headers={"Impersonate-User": "eve"}), 403, "Forbidden"
    )
    assert status["message"].startswith(
        f'configmaps{name} is forbidden: User "eve" cannot {verb} resource "configmaps" in API group "" '
        'in the namespace "default"'
    )
    status = refused(await http(method, path, configmap("there"), anonymous=True), 403, "Forbidden")
    assert 'User "system:anonymous" cannot' in status["message"]
    bearer = {"Authorization": "Bearer nonsense"}
    status = refused(await http(method, path, b"{", anonymous=True, headers=bearer), 401, "Unauthorized")
    assert status["message"] == "Unauthorized"
    assert await revision(http) == before


async def test_rights_come_before_paths_and_bodies(http: Http) -> None:
    eve = {"Impersonate-User": "eve"}
    refused(await http("POST", "/api/v1/namespaces/default/wombats", b"{", headers=eve), 403, "Forbidden")
    refused(await http("POST", "/nowhere", headers=eve), 403, "Forbidden", 'cannot post path "/nowhere"')


@pytest.mark.parametrize("levels", [300, 3000])
@pytest.mark.parametrize("kind", [JSON_PATCH, MERGE, STRATEGIC, APPLY])
async def test_deeply_nested_patches_do_not_break_the_server(http: Http, kind: str, levels: int) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    before = await revision(http)
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    if kind == JSON_PATCH:
        deep = b'[{"op":"add","path":"/data/x","value":' + deep + b"}]"
    if kind == APPLY:
        deep = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":' + deep + b"}"
    answer = await http("PATCH", f"{CONFIGMAPS}/c?fieldManager=m&fieldValidation=Strict", deep, content_type=kind)
    assert 400 <= answer.code < 500, answer.body
    assert await revision(http) == before


async def test_a_write_that_takes_longer_than_the_client_waits_times_out(http: Http, server: ApiServer) -> None:
    never = asyncio.Event()

    async def stuck(*_args: Any, **_named: Any) -> int:
        await never.wait()
        return 0

    write, server.store.write = server.store.write, stuck  # type: ignore[method-assign]
    try:
        answer = await http("POST", f"{CONFIGMAPS}?timeout=100ms", configmap())
    finally:
        server.store.write = write  # type: ignore[method-assign]
    refused(answer, 504, "Timeout", "Timeout: request did not complete within requested timeout")
    assert (await http("GET", f"{CONFIGMAPS}/c")).code == 404


async def test_a_name_that_is_no_name_reaches_nothing(http: Http) -> None:
    for name in ("a%2Fb", "%00", "a b", "x" * 300):
        answer = await http("PUT", f"{CONFIGMAPS}/{name}", configmap(unquote(name)))
        assert answer.code in (400, 404, 405, 422), (name, answer.body)
    for name in ("a%2Fb", "%00", "a b", "x" * 300):
        answer = await http("PATCH", f"{CONFIGMAPS}/{name}?fieldManager=m", configmap(""), content_type=APPLY)
        assert answer.code in (400, 404, 405, 422), (name, answer.body)
    ok(await http("POST", PODS, pod()), 201)
