"""What is parsed of responses for those who have no use for managedFields."""

from __future__ import annotations

import orjson
import pytest

from karmada.kube.client import responses
from karmada.kube.client.slim import parse_event, parse_list, parse_object
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.errors import Expired
from karmada.kube.objects.types import Obj

KEPT: Obj = {"name": "web", "namespace": "default", "resourceVersion": "7", "labels": {"a": "b"}}
METADATA: Obj = {**KEPT, "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]}
DEPLOYMENT: Obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": METADATA, "spec": {"replicas": 1.5}}
SECRET: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": METADATA, "type": "Opaque", "data": {"a": "b"}}
ROLE: Obj = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": METADATA, "rules": []}
GONE: Obj = {"kind": "Status", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410, "message": "old"}


@pytest.mark.parametrize("obj", [DEPLOYMENT, SECRET, {**DEPLOYMENT, "status": None}], ids=str)
def test_an_object_has_all_but_its_managed_fields(obj: Obj) -> None:
    slim = {**obj, "metadata": KEPT}
    assert parse_object(orjson.dumps(obj)) == slim
    assert parse_event(orjson.dumps({"type": "ADDED", "object": obj})) == {"type": "ADDED", "object": slim}


@pytest.mark.parametrize("value", [ROLE, GONE, {}, [], None, 1, "text"], ids=str)
def test_what_has_another_shape_is_parsed_as_a_whole(value: object) -> None:
    assert parse_object(orjson.dumps(value)) == value
    assert parse_list(orjson.dumps(value)) == value
    assert parse_event(orjson.dumps(value)) == value


@pytest.mark.parametrize("parse", [parse_object, parse_list, parse_event])
@pytest.mark.parametrize("text", [b"", b"{", b'{"metadata":{"name":"\xff"}}', b'{"metadata":{}} {}'])
def test_what_is_no_json_is_an_error(parse: type, text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parse(text)


def test_items_of_a_list_are_named_and_its_metadata_stays() -> None:
    item = {key: value for key, value in DEPLOYMENT.items() if key not in ("apiVersion", "kind")}
    metadata = {"resourceVersion": "9", "continue": "there", "remainingItemCount": 3}
    body = {"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": metadata, "items": [item, item]}
    call = Call("GET", "/x", one_by_one=True, managed_fields=False)
    found = responses.parsed(call, "application/json", orjson.dumps(body))
    assert found == {**body, "items": [{**DEPLOYMENT, "metadata": KEPT}] * 2}


def test_a_watch_ends_with_its_error() -> None:
    parse = responses.event_parser(Call("GET", "/x", managed_fields=False))
    with pytest.raises(Expired):
        responses.watch_event("here", orjson.dumps({"type": "ERROR", "object": GONE}), parse)
    with pytest.raises(ConnectionFailed):
        responses.watch_event("here", b'{"type":"ADDED"}', parse)
