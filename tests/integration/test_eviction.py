"""Evictions and the budgets that hold them back."""

from __future__ import annotations

import asyncio
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.integration.samples import PODS, interleave, ok, patch, pod, refused
from tests.support.wire import Answer, Http

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def budget(http: Http, allowed: int, name: str = "b", generation: int = 1, **status: Any) -> None:
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}}
    ok(await http("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec}), 201)
    seen = {
        "disruptionsAllowed": allowed, "observedGeneration": generation,
        "desiredHealthy": 2, "currentHealthy": 2 + allowed, "expectedPods": 3, **status,
    }  # fmt: skip
    ok(await patch(http, f"{BUDGETS}/{name}/status", {"status": seen}))


async def running(http: Http, name: str) -> None:
    ok(await http("POST", PODS, pod(name, node="n1", labels={"app": "x"})), 201)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    ok(await patch(http, f"{PODS}/{name}/status", {"status": status}))


async def evict(http: Http, name: str, version: str = "policy/v1", **more: Any) -> Answer:
    body = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": name}, **more}
    return await http("POST", f"{PODS}/{name}/eviction", body)


async def test_an_eviction_within_the_budget_deletes_the_pod_and_spends_it(http: Http) -> None:
    await budget(http, 1)
    await running(http, "a")
    answer = ok(await evict(http, "a"), 201)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    going = ok(await http("GET", f"{PODS}/a"))
    assert going["metadata"]["deletionGracePeriodSeconds"] == 30
    [condition] = [c for c in going["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")
    status = ok(await http("GET", f"{BUDGETS}/b"))["status"]
    assert status["disruptionsAllowed"] == 0
    assert "a" in status["disruptedPods"]


async def test_an_eviction_beyond_the_budget_is_refused_without_retry_after(http: Http) -> None:
    await budget(http, 0)
    await running(http, "a")
    answer = await evict(http, "a")
    status = refused(answer, 429, "TooManyRequests")
    assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert "retryAfterSeconds" not in status["details"]
    assert "Retry-After" not in answer.headers
    [cause] = status["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget b needs 2 healthy pods and has 2 currently"
    assert "deletionTimestamp" not in ok(await http("GET", f"{PODS}/a"))["metadata"]


async def test_a_budget_that_is_not_up_to_date_holds_back(http: Http) -> None:
    await budget(http, 1, generation=0)
    await running(http, "a")
    status = refused(await evict(http, "a"), 429, "TooManyRequests")
    assert status["details"]["causes"][0]["message"] == (
        "The disruption budget b is still being processed by the server."
    )


async def test_more_than_one_budget_is_not_supported(http: Http) -> None:
    await budget(http, 1)
    await budget(http, 1, "c")
    await running(http, "a")
    refused(
        await evict(http, "a"),
        500,
        "",
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )


async def test_pending_pods_pass_any_budget(http: Http) -> None:
    await budget(http, 0)
    ok(await http("POST", PODS, pod("a", labels={"app": "x"})), 201)
    ok(await evict(http, "a", "policy/v1beta1"), 201)
    assert (await http("GET", f"{PODS}/a")).code == 404


async def test_options_of_the_deletion_are_kept(http: Http) -> None:
    await running(http, "a")
    refused(await evict(http, "a", deleteOptions={"preconditions": {"uid": "x"}}), 409, "Conflict")
    ok(await evict(http, "a", deleteOptions={"gracePeriodSeconds": 3}), 201)
    assert ok(await http("GET", f"{PODS}/a"))["metadata"]["deletionGracePeriodSeconds"] == 3


async def test_an_eviction_must_fit_its_pod(http: Http) -> None:
    await running(http, "a")
    other = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "z"}}
    refused(await http("POST", f"{PODS}/a/eviction", other), 400, "BadRequest")
    refused(await evict(http, "ghost"), 404, "NotFound", 'pods "ghost" not found')
    refused(await evict(http, "a", "policy/v9"), 400, "BadRequest")
    refused(await evict(http, "a", deleteOptions=[1]), 400, "BadRequest")


async def test_a_crowd_of_evictions_spends_no_more_than_there_is(http: Http, server: ApiServer) -> None:
    await budget(http, 2)
    for index in range(5):
        await running(http, f"p{index}")
    interleave(server)
    answers = await asyncio.gather(*(evict(http, f"p{index}") for index in range(5)))
    assert sorted(answer.code for answer in answers) == [201, 201, 429, 429, 429]
    pods = ok(await http("GET", PODS))["items"]
    assert sum("deletionTimestamp" in p["metadata"] for p in pods) == 2
