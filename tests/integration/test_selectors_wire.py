"""Label and field selectors as clients send them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.streams import CONFIGMAPS, create, served
from tests.support.cases import cases
from tests.support.custom_kinds import definition, version
from tests.support.wire import Answer, Http

on_module_loop = pytest.mark.asyncio(loop_scope="module")


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


@cases(
    ("mine", "abc"),
    ("mine,!rank", "c"),
    ("mine,colour=red", "a"),
    ("mine,colour==red", "a"),
    ("mine,colour!=red", "bc"),
    ("mine,colour in (red,blue)", "ab"),
    ("mine,colour notin (red)", "bc"),
    ("mine , rank > 5", "b"),
    ("mine,rank<5", "a"),
    ("mine,rank>5,rank<5", ""),
    ("colour=", ""),
    ("mine,colour in (, red)", "a"),
)
async def test_label_selectors(selector: str, expected: str, http: Http) -> None:
    await create(http, "a", labels={"mine": "1", "colour": "red", "rank": "3"})
    await create(http, "b", labels={"mine": "1", "colour": "blue", "rank": "7"})
    await create(http, "c", labels={"mine": "1"})
    await create(http, "other")
    listed = (await http("GET", f"{CONFIGMAPS}?labelSelector={quote(selector)}")).json()
    assert names(listed) == list(expected)


@on_module_loop
@cases("a=b=c", "!", "a in b", "a in (", "=x", "a>b", "a b", "in (x)", "a=b,,c")
async def test_a_label_selector_that_cannot_be_read_is_refused(selector: str, idle: Http) -> None:
    answer = await idle("GET", f"{CONFIGMAPS}?labelSelector={quote(selector)}")
    assert (answer.code, answer.json()["reason"]) == (400, "BadRequest"), answer.body
    message = answer.json()["message"]
    assert "unable to parse requirement: " in message or "found '" in message or "Invalid value" in message


@on_module_loop
@pytest.mark.parametrize("verb", ["list", "watch", "deletecollection"])
@pytest.mark.parametrize("parameter", ["labelSelector", "fieldSelector"])
async def test_a_selector_that_would_cost_much_for_each_object_is_refused_with_the_limit(
    idle: Http, verb: str, parameter: str
) -> None:
    method, more = ("DELETE" if verb == "deletecollection" else "GET"), ("&watch=1" if verb == "watch" else "")
    for terms, why in (
        (["metadata.name!=a"] * 65, "the selector has too many requirements: at most 64 are allowed"),
        (["metadata.name!=" + "a" * 60] * 120, "the selector is too long: 9119 characters, at most 8192 are allowed"),
    ):
        answer = await idle(method, f"{CONFIGMAPS}?{parameter}={quote(','.join(terms))}{more}")
        assert (answer.code, answer.json()["message"]) == (400, why)


POD = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "sa", "schedulerName": "mine"},
}
SAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "pods": ("/api/v1/namespaces/default/pods", POD),
    "nodes": ("/api/v1/nodes", {"metadata": {"name": "p"}, "spec": {"unschedulable": True}}),
    "namespaces": ("/api/v1/namespaces", {"metadata": {"name": "p"}}),
    "secrets": ("/api/v1/namespaces/default/secrets", {"metadata": {"name": "p"}, "type": "mine/special"}),
    "services": (
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "p"}, "spec": {"type": "NodePort", "ports": [{"port": 80}], "clusterIP": "10.96.0.77"}},
    ),
    "jobs": (
        "/apis/batch/v1/namespaces/default/jobs",
        {
            "metadata": {"name": "p"},
            "spec": {
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}},
            },
        },
    ),
    "replicationcontrollers": (
        "/api/v1/namespaces/default/replicationcontrollers",
        {
            "metadata": {"name": "p"},
            "spec": {
                "replicas": 0,
                "selector": {"a": "b"},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        },
    ),
    "events": (
        "/api/v1/namespaces/default/events",
        {
            "metadata": {"name": "p"},
            "involvedObject": {
                "kind": "Pod", "namespace": "default", "name": "web", "uid": "u1", "apiVersion": "v1",
                "resourceVersion": "12", "fieldPath": "spec.containers{c}",
            },
            "reason": "Tested", "type": "Warning", "source": {"component": "tests"},
            "reportingComponent": "tests", "reportingInstance": "i", "message": "m",
        },
    ),
}  # fmt: skip
FIELDS = [
    ("pods", "spec.nodeName=", "spec.nodeName=n1"),
    ("pods", "spec.host=", "spec.host=n1"),
    ("pods", "spec.restartPolicy=Always", "spec.restartPolicy=Never"),
    ("pods", "spec.schedulerName=mine", "spec.schedulerName=default-scheduler"),
    ("pods", "spec.serviceAccountName=sa", "spec.serviceAccountName=default"),
    ("pods", "spec.hostNetwork=false", "spec.hostNetwork=true"),
    ("pods", "status.phase=Pending", "status.phase=Running"),
    ("pods", "status.podIP=", "status.podIP=10.0.0.1"),
    ("pods", "status.podIPs=", "status.podIPs=10.0.0.1"),
    ("pods", "status.nominatedNodeName=", "status.nominatedNodeName=n1"),
    ("nodes", "spec.unschedulable=true", "spec.unschedulable=false"),
    ("namespaces", "status.phase=Active", "status.phase=Terminating"),
    ("secrets", "type=mine/special", "type=Opaque"),
    ("services", "spec.clusterIP=10.96.0.77", "spec.clusterIP=None"),
    ("services", "spec.type=NodePort", "spec.type=ClusterIP"),
    ("jobs", "status.successful=0", "status.successful=1"),
    ("replicationcontrollers", "status.replicas=0", "status.replicas=1"),
    ("events", "involvedObject.kind=Pod", "involvedObject.kind=Node"),
    ("events", "involvedObject.namespace=default", "involvedObject.namespace=other"),
    ("events", "involvedObject.name=web", "involvedObject.name=other"),
    ("events", "involvedObject.uid=u1", "involvedObject.uid=u2"),
    ("events", "involvedObject.apiVersion=v1", "involvedObject.apiVersion=v2"),
    ("events", "involvedObject.resourceVersion=12", "involvedObject.resourceVersion=13"),
    ("events", "involvedObject.fieldPath=spec.containers{c}", "involvedObject.fieldPath=spec"),
    ("events", "reason=Tested", "reason=Other"),
    ("events", "reportingComponent=tests", "reportingComponent=other"),
    ("events", "source=tests", "source=other"),
    ("events", "type=Warning", "type=Normal"),
]


async def test_every_field_that_a_kind_can_be_selected_by(http: Http) -> None:
    assert (await http("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "sa"}})).code == 201
    for path, obj in SAMPLES.values():
        answer = await http("POST", path, obj)
        assert answer.code == 201, answer.body
    for kind, right, wrong in FIELDS:
        path = SAMPLES[kind][0]
        for selector, expected in ((right, ["p"]), (wrong, [])):
            both = f"metadata.name=p,{selector}"
            answer = await http("GET", f"{path}?fieldSelector={quote(both)}")
            assert answer.code == 200, (kind, selector, answer.body)
            assert names(answer.json()) == expected, (kind, selector)
            opposite = both.replace(selector, selector.replace("=", "!=", 1))
            answer = await http("GET", f"{path}?fieldSelector={quote(opposite)}")
            assert names(answer.json()) == [n for n in ["p"] if n not in expected], (kind, opposite)


@cases(
    ("regarding.kind=Pod", ["p"]),
    ("regarding.namespace=default,regarding.name=web,regarding.uid=u1", ["p"]),
    ("regarding.apiVersion=v1,regarding.resourceVersion=12", ["p"]),
    ("regarding.fieldPath=spec.containers{c}", ["p"]),
    ("reportingController=tests,reason=Tested,type=Warning", ["p"]),
    ("regarding.kind=Node", []),
)
async def test_events_of_the_new_group_are_selected_by_its_own_names(
    selector: str, expected: list[str], http: Http
) -> None:
    await http("POST", *SAMPLES["events"])
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    answer = await http("GET", f"{path}?fieldSelector={quote('metadata.name=p,' + selector)}")
    assert names(answer.json()) == expected


@on_module_loop
@cases(
    ("/api/v1/pods", "spec.foo=1", "field label not supported: spec.foo"),
    ("/api/v1/secrets", "data=1", "field label not supported: data"),
    (CONFIGMAPS, "spec.foo=1",
     '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"'),
    ("/apis/apps/v1/deployments", "status.replicas=1",
     '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"'),
)  # fmt: skip
async def test_other_fields_are_refused(path: str, selector: str, message: str, idle: Http) -> None:
    for verb in ("", "&watch=1"):
        answer = await idle("GET", f"{path}?fieldSelector={quote(selector)}{verb}")
        assert (answer.code, answer.json()["reason"]) == (400, "BadRequest")
        assert message in answer.json()["message"]


async def test_metadata_fields_select_in_every_kind(http: Http) -> None:
    await create(http, "a")

    async def select(path: str, text: str) -> Answer:
        return await http("GET", f"{path}?fieldSelector={quote(text)}")

    assert names((await select("/api/v1/configmaps", "metadata.namespace=default,metadata.name=a")).json()) == ["a"]
    assert names((await select("/api/v1/configmaps", "metadata.namespace==other,metadata.name=a")).json()) == []
    assert names((await select(CONFIGMAPS, "metadata.name=a,metadata.name=b")).json()) == []
    assert names((await select(CONFIGMAPS, "metadata.name=")).json()) == []
    assert names((await select("/api/v1/namespaces", "metadata.name=default")).json()) == ["default"]
    assert names((await select("/api/v1/nodes", "metadata.namespace=x")).json()) == []


async def test_values_are_escaped_with_backslashes(http: Http) -> None:
    odd = "a,b=c\\d"
    event = {**SAMPLES["events"][1], "reason": odd}
    assert (await http("POST", SAMPLES["events"][0], event)).code == 201
    escaped = quote("reason=" + odd.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\="))
    assert names((await http("GET", f"{SAMPLES['events'][0]}?fieldSelector={escaped}")).json()) == ["p"]
    assert (await http("GET", f"{SAMPLES['events'][0]}?fieldSelector=reason")).code == 400


async def test_custom_resources_are_selected_by_the_fields_their_crd_names(http: Http) -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"colour": {"type": "string"}, "big": {"type": "boolean"}, "size": {"type": "integer"}},
            }
        },
    }
    selectable = [{"jsonPath": ".spec.colour"}, {"jsonPath": ".spec.big"}]
    crd = definition("example.com", "Shirt", version("v1", schema, selectableFields=selectable))
    assert (await http("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)).code == 201
    path = "/apis/example.com/v1/namespaces/default/shirts"
    await served(http, path)
    for name, spec in (("a", {"colour": "red", "big": True}), ("b", {"colour": "blue", "big": False}), ("c", {})):
        body = {"apiVersion": "example.com/v1", "kind": "Shirt", "metadata": {"name": name}, "spec": spec}
        assert (await http("POST", path, body)).code == 201
    for selector, expected in (
        ("spec.colour=red", "a"), ("spec.colour!=red", "bc"), ("spec.big=true", "a"), ("spec.colour=", "c"),
    ):  # fmt: skip
        listed = (await http("GET", f"{path}?fieldSelector={quote(selector)}")).json()
        assert names(listed) == list(expected), selector
        assert all(item["kind"] == "Shirt" and item["apiVersion"] == "example.com/v1" for item in listed["items"])
    refused = await http("GET", f"{path}?fieldSelector=spec.size%3D1")
    assert (refused.code, refused.json()["message"]) == (400, "field label not supported: spec.size")
