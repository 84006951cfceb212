"""Conversion between versions by webhook, through the whole server: reads, writes, lists, watches, and failures."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.watchcache.entry import storage_key
from tests.support.custom_kinds import definition, version
from tests.support.eventually import eventually
from tests.support.tls_backend import TlsBackend, authority
from tests.support.wire import Http

GROUP = "conv.example.com"
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OLD, NEW = f"/apis/{GROUP}/v1/namespaces/default/hosts", f"/apis/{GROUP}/v2/namespaces/default/hosts"
HOSTS = GVR(GROUP, "v1", "hosts")


class Converter:
    """v1 has `spec.hostPort: "h:p"`, v2 has `spec.host` and `spec.port`."""

    def __init__(self) -> None:
        self.requests: list[Obj] = []
        self.spoil: Any = None

    async def __call__(self, raw: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await raw.read())
        request = review["request"]
        self.requests.append(request)
        response: Obj = {
            "uid": request["uid"],
            "result": {"status": "Success"},
            "convertedObjects": [convert(obj, request["desiredAPIVersion"]) for obj in request["objects"]],
        }
        if self.spoil is not None:
            self.spoil(response)
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})


def convert(obj: Obj, wanted: str) -> Obj:
    if obj["apiVersion"] == wanted:
        return obj
    spec = obj.get("spec") or {}
    if wanted.endswith("/v2"):
        host, _, port = spec.get("hostPort", ":").partition(":")
        spec = {"host": host, "port": port}
    else:
        spec = {"hostPort": f"{spec.get('host', '')}:{spec.get('port', '')}"}
    return {**obj, "apiVersion": wanted, "spec": spec}


@pytest.fixture
async def converter(server: ApiServer, http: Http) -> AsyncIterator[Converter]:
    converter = Converter()
    async with TlsBackend() as backend:
        backend.handler = converter
        await http("POST", CRD_PATH, hosts(f"https://127.0.0.1:{backend.port}/convert"))
        await eventually(lambda: server.registry.get(HOSTS))
        yield converter


def hosts(url: str) -> Obj:
    def of(name: str, *fields: str) -> Obj:
        properties = {field: {"type": "string", "maxLength": 20} for field in fields}
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
        return version(name, schema, storage=name == "v1")

    client = {"url": url, "caBundle": base64.b64encode(authority().cert_pem).decode()}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    conversion = {"conversion": {"strategy": "Webhook", "webhook": webhook}}
    return definition(GROUP, "Host", of("v1", "hostPort"), of("v2", "host", "port"), spec=conversion)


def host(version: str, name: str, **spec: str) -> Obj:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Host", "metadata": {"name": name}, "spec": spec}


async def test_what_is_written_in_one_version_is_read_in_the_other(http: Http, converter: Converter) -> None:
    made = await http("POST", OLD, host("v1", "a", hostPort="h:80"))
    assert made.json()["spec"] == {"hostPort": "h:80"}
    read = (await http("GET", f"{NEW}/a")).json()
    assert (read["apiVersion"], read["spec"]) == (f"{GROUP}/v2", {"host": "h", "port": "80"})
    request = converter.requests[-1]  # the garbage collector may have sent one, too
    assert request["desiredAPIVersion"] == f"{GROUP}/v2"
    assert request["objects"][0]["apiVersion"] == f"{GROUP}/v1"
    assert request["uid"]


async def test_what_is_written_in_another_version_is_stored_in_the_storage_version(
    server: ApiServer, http: Http, converter: Converter
) -> None:
    made = await http("POST", NEW, host("v2", "a", host="h", port="80"))
    assert made.code == 201
    assert made.json()["spec"] == {"host": "h", "port": "80"}
    stored = await server.store.get(storage_key(HOSTS.group_resource, "default", "a"))
    assert stored is not None
    assert json.loads(stored.value)["apiVersion"] == f"{GROUP}/v1"
    assert json.loads(stored.value)["spec"] == {"hostPort": "h:80"}


async def test_updates_patches_and_applies_work_in_the_version_requested(http: Http, converter: Converter) -> None:
    await http("POST", OLD, host("v1", "a", hostPort="h:80"))
    obj = (await http("GET", f"{NEW}/a")).json()
    obj["spec"]["port"] = "81"
    assert (await http("PUT", f"{NEW}/a", obj)).json()["spec"] == {"host": "h", "port": "81"}
    merged = await http("PATCH", f"{NEW}/a", {"spec": {"port": "82"}}, content_type="application/merge-patch+json")
    assert merged.json()["spec"] == {"host": "h", "port": "82"}
    change = [{"op": "replace", "path": "/spec/host", "value": "i"}]
    patched = await http("PATCH", f"{NEW}/a", change, content_type="application/json-patch+json")
    assert patched.json()["spec"] == {"host": "i", "port": "82"}
    applied = await http(
        "PATCH", f"{NEW}/a?fieldManager=me&force=true", host("v2", "a", port="83"),
        content_type="application/apply-patch+yaml",
    )  # fmt: skip
    assert applied.json()["spec"] == {"host": "i", "port": "83"}
    assert (await http("GET", f"{OLD}/a")).json()["spec"] == {"hostPort": "i:83"}
    deleted = await http("DELETE", f"{NEW}/a")
    assert (deleted.code, deleted.json()["status"]) == (200, "Success")


async def test_a_no_op_in_another_version_is_a_no_op(http: Http, converter: Converter) -> None:
    await http("POST", OLD, host("v1", "a", hostPort="h:80"))
    obj = (await http("GET", f"{NEW}/a")).json()
    again = await http("PUT", f"{NEW}/a", obj)
    assert again.json()["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]


async def test_a_list_is_converted_in_one_call(http: Http, converter: Converter) -> None:
    for number in range(5):
        await http("POST", OLD, host("v1", f"h{number}", hostPort=f"h:{number}"))
    converter.requests.clear()
    listed = (await http("GET", NEW)).json()
    assert [item["spec"]["port"] for item in listed["items"]] == ["0", "1", "2", "3", "4"]
    assert 5 in [len(request["objects"]) for request in converter.requests], "the garbage collector lists them, too"


async def test_a_watch_shows_the_version_requested(http: Http, converter: Converter) -> None:
    await http("POST", OLD, host("v1", "before", hostPort="h:1"))
    async with http.stream(f"{NEW}?watch=true") as response:
        event = json.loads(await response.content.readline())
        assert (event["type"], event["object"]["spec"]) == ("ADDED", {"host": "h", "port": "1"})
        await http("POST", OLD, host("v1", "after", hostPort="h:2"))
        event = json.loads(await response.content.readline())
        assert (event["type"], event["object"]["spec"]) == ("ADDED", {"host": "h", "port": "2"})
        await http("DELETE", f"{OLD}/after")
        event = json.loads(await response.content.readline())
        assert (event["type"], event["object"]["apiVersion"]) == ("DELETED", f"{GROUP}/v2")


async def test_each_version_is_validated_by_its_own_schema(http: Http, converter: Converter) -> None:
    answer = await http("POST", NEW, host("v2", "a", host="x" * 21, port="1"))
    assert answer.code == 422
    assert "spec.host: Too long: may not be more than 20 bytes" in answer.json()["message"]


FAILURES = {
    "failure": (
        lambda r: r.update(result={"status": "Failure", "message": "cannot do that"}, convertedObjects=[]),
        "cannot do that",
    ),
    "too few": (lambda r: r.update(convertedObjects=[]), "returned 0 objects, expected 1"),
    "wrong uid": (lambda r: r.update(uid="another"), ""),
    "wrong version": (lambda r: r["convertedObjects"][0].update(apiVersion="else.example.com/v9"), ""),
    "changed name": (lambda r: r["convertedObjects"][0]["metadata"].update(name="other"), ""),
    "changed uid": (lambda r: r["convertedObjects"][0]["metadata"].update(uid="other"), ""),
    "no metadata": (lambda r: r["convertedObjects"][0].pop("metadata"), ""),
}


@pytest.mark.parametrize(("spoil", "text"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_conversion_that_goes_wrong_is_an_error_and_changes_nothing(
    http: Http, converter: Converter, spoil: Any, text: str
) -> None:
    await http("POST", OLD, host("v1", "a", hostPort="h:80"))
    converter.spoil = spoil
    answer = await http("GET", f"{NEW}/a")
    assert answer.code == 500
    start = f"conversion webhook for {GROUP}/v1, Kind=Host failed: "
    assert start in answer.json()["message"]
    assert text in answer.json()["message"]
    assert (await http("POST", NEW, host("v2", "b", host="h", port="1"))).code == 500
    assert (await http("GET", f"{OLD}/b")).code == 404
    assert (await http("GET", f"{OLD}/a")).code == 200


async def test_labels_and_annotations_may_be_changed_by_a_conversion(http: Http, converter: Converter) -> None:
    await http("POST", OLD, host("v1", "a", hostPort="h:80"))
    converter.spoil = lambda r: r["convertedObjects"][0]["metadata"].update(labels={"by": "webhook"})
    assert (await http("GET", f"{NEW}/a")).json()["metadata"]["labels"] == {"by": "webhook"}


async def test_a_webhook_that_is_not_there_is_an_error_on_the_versions_that_need_it(
    server: ApiServer, http: Http
) -> None:
    await http("POST", CRD_PATH, hosts("https://127.0.0.1:1/convert"))
    await eventually(lambda: server.registry.get(HOSTS))
    assert (await http("POST", OLD, host("v1", "a", hostPort="h:80"))).code == 201
    answer = await http("GET", f"{NEW}/a")
    assert answer.code == 500
    assert f"conversion webhook for {GROUP}/v1, Kind=Host failed: " in answer.json()["message"]
    assert (await http("DELETE", f"{CRD_PATH}/hosts.{GROUP}")).code == 200
    await eventually(lambda: server.registry.get(HOSTS) is None)


async def test_a_certificate_that_the_bundle_does_not_sign_is_refused(server: ApiServer, http: Http) -> None:
    async with TlsBackend() as backend:
        backend.handler = Converter()
        made = hosts(f"https://127.0.0.1:{backend.port}/convert")
        made["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = base64.b64encode(
            server.pki.ca.cert_pem
        ).decode()
        await http("POST", CRD_PATH, made)
        await eventually(lambda: server.registry.get(HOSTS))
        await http("POST", OLD, host("v1", "a", hostPort="h:80"))
        answer = await http("GET", f"{NEW}/a")
    assert answer.code == 500
    assert "certificate" in answer.json()["message"]
