from __future__ import annotations

from typing import Any

import orjson
import pytest

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.schema.yamlio import dump_yaml, load_yaml
from karmada.search.proxy.updating import for_member
from karmada.search.proxy.versions import Versions
from tests.support.cases import cases

TWO = Versions({"m1": "100", "m2": "200"}).encode()


def pod(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "unknown": {"kept": True}}


@pytest.mark.parametrize(
    ("read", "sent"),
    [
        ({"resourceVersion": TWO}, {"resourceVersion": "100"}),
        ({"resourceVersion": Versions({"m2": "200"}).encode()}, {"resourceVersion": ""}),
        (
            {"annotations": {CACHED_FROM_CLUSTER: "m1", "a": "b"}, "resourceVersion": "7"},
            {"annotations": {"a": "b"}, "resourceVersion": "7"},
        ),
        ({"annotations": {CACHED_FROM_CLUSTER: "m1"}}, {}),
    ],
)
@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "application/json; charset=utf-8",
        "",
        "application/yaml",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ],
)
def test_the_member_gets_the_object_as_its_own(read: Any, sent: Any, media: str) -> None:
    dump, load = (dump_yaml, load_yaml) if "yaml" in media else (orjson.dumps, orjson.loads)
    assert load(for_member(dump(pod(**read)), media, "m1")) == pod(**sent)


@cases(
    b'{ "metadata": {"name":"p", "resourceVersion":"7"} }',
    b'{ "metadata": {"name":"p"} }',
    b'{"metadata":null}',
    b"[1, 2]",
    b"no json",
    b"",
)
def test_a_body_that_need_not_change_stays_as_it_is(body: bytes) -> None:
    assert for_member(body, "application/json", "m1") == body


def test_a_body_of_another_type_stays_as_it_is() -> None:
    body = orjson.dumps(pod(resourceVersion=TWO))
    assert for_member(body, "application/cbor", "m1") == body


def test_the_version_of_a_json_patch_is_that_of_the_member() -> None:
    label = {"op": "add", "path": "/metadata/labels/a", "value": TWO}
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": TWO}
    sent = for_member(orjson.dumps([label, version]), "application/json-patch+json", "m1")
    assert orjson.loads(sent) == [label, {**version, "value": "100"}]
