"""Events in two APIs over one storage, and Leases for leader election."""

from __future__ import annotations

import asyncio
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.integration.samples import CORE, STRATEGIC, interleave, ok, patch, refused
from tests.support.cases import cases
from tests.support.wire import Http

EVENTS, NEW_EVENTS = f"{CORE}/events", "/apis/events.k8s.io/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def event(name: str = "e.1", **more: Any) -> Any:
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Started",
        "message": "it started",
        "type": "Normal",
        "count": 1,
        "source": {"component": "kubelet"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        **more,
    }


def new_event(**more: Any) -> Any:
    return {
        "metadata": {"name": "n.1"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.500000Z",
        "reportingController": "example.io/c",
        "reportingInstance": "c-1",
        "action": "Start",
        "reason": "Started",
        "note": "hello",
        "type": "Normal",
        **more,
    }


async def test_an_event_is_the_same_in_both_apis(http: Http) -> None:
    core = ok(await http("POST", EVENTS, event()), 201)
    new = ok(await http("GET", f"{NEW_EVENTS}/e.1"))
    assert new["apiVersion"] == "events.k8s.io/v1"
    assert new["regarding"] == core["involvedObject"]
    assert (new["note"], new["deprecatedCount"]) == ("it started", 1)
    assert new["deprecatedSource"] == {"component": "kubelet"}
    assert new["deprecatedFirstTimestamp"] == core["firstTimestamp"]
    made = ok(await http("POST", NEW_EVENTS, new_event()), 201)
    assert made["eventTime"] == "2026-01-01T00:00:00.500000Z"
    old = ok(await http("GET", f"{EVENTS}/n.1"))
    assert (old["message"], old["reportingComponent"]) == ("hello", "example.io/c")
    assert old["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@cases(STRATEGIC, "application/merge-patch+json")
async def test_recorders_count_up_by_patching(kind: str, http: Http) -> None:
    ok(await http("POST", EVENTS, event()), 201)
    change = {"count": 5, "lastTimestamp": "2026-01-01T01:00:00Z"}
    patched = ok(await patch(http, f"{EVENTS}/e.1", change, kind))
    assert (patched["count"], patched["lastTimestamp"]) == (5, "2026-01-01T01:00:00Z")
    refused(await patch(http, f"{EVENTS}/ghost", change, kind), 404, "NotFound", 'events "ghost" not found')


async def test_an_event_stays_in_the_namespace_of_its_object(http: Http) -> None:
    body = event(involvedObject={"kind": "Pod", "name": "p", "namespace": "kube-system"})
    refused(
        await http("POST", EVENTS, body),
        422,
        "Invalid",
        'involvedObject.namespace: Invalid value: "kube-system": does not match event.namespace',
    )
    ok(await http("POST", EVENTS, event(involvedObject={"kind": "Node", "name": "n"})), 201)


@cases("eventTime", "reportingController", "reportingInstance", "action", "reason", "type")
async def test_new_events_need_all_fields(key: str, http: Http) -> None:
    body = new_event()
    del body[key]
    refused(await http("POST", NEW_EVENTS, body), 422, "Invalid", key)


async def test_of_new_events_only_the_series_moves_on(http: Http) -> None:
    ok(await http("POST", NEW_EVENTS, new_event()), 201)
    series = {"series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    moved = ok(await patch(http, f"{NEW_EVENTS}/n.1", series))
    assert moved["series"] == {"count": 3, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    refused(await patch(http, f"{NEW_EVENTS}/n.1", {"note": "other"}), 422, "Invalid", "note")


async def test_a_recorder_is_not_kept_waiting_by_a_namespace_that_ends(http: Http) -> None:
    ok(await http("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}), 201)
    held = {"metadata": {"name": "held", "finalizers": ["example.io/hold"]}}
    ok(await http("POST", "/api/v1/namespaces/x/configmaps", held), 201)
    ok(await http("DELETE", "/api/v1/namespaces/x"))
    body = event(involvedObject={"kind": "Pod", "name": "p", "namespace": "x"})
    refused(await http("POST", "/api/v1/namespaces/x/events", body), 403, "Forbidden", "is being terminated")


async def test_a_lease_keeps_microseconds(http: Http) -> None:
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.123456Z",
            "acquireTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 0}  # fmt: skip
    made = ok(await http("POST", LEASES, {"metadata": {"name": "l"}, "spec": spec}), 201)
    assert made["spec"]["renewTime"] == "2026-01-01T00:00:00.123456Z"
    assert made["spec"]["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert made["spec"]["leaseTransitions"] == 0


@cases({"leaseDurationSeconds": 0}, {"leaseTransitions": -1}, {"leaseDurationSeconds": -5})
async def test_a_lease_that_makes_no_sense_is_invalid(spec: Any, http: Http) -> None:
    refused(await http("POST", LEASES, {"metadata": {"name": "l"}, "spec": spec}), 422, "Invalid", "spec.lease")


async def test_of_several_candidates_one_takes_the_lease(http: Http, server: ApiServer) -> None:
    interleave(server)
    made = ok(await http("POST", LEASES, {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 15}}), 201)

    async def take(candidate: str) -> int:
        body = {**made, "spec": {"leaseDurationSeconds": 15, "holderIdentity": candidate}}
        return (await http("PUT", f"{LEASES}/l", body)).code

    codes = await asyncio.gather(*(take(f"c{index}") for index in range(6)))
    assert sorted(codes) == [200] + [409] * 5
    assert ok(await http("GET", f"{LEASES}/l"))["spec"]["holderIdentity"] == f"c{codes.index(200)}"


async def test_of_several_puts_that_would_create_one_does(http: Http, server: ApiServer) -> None:
    interleave(server)
    path = f"{CORE}/endpoints/e"
    answers = await asyncio.gather(
        *(http("PUT", path, {"metadata": {"name": "e", "labels": {f"l{i}": "1"}}}) for i in range(5))
    )
    assert sorted(answer.code for answer in answers) == [200] * 4 + [201]
