"""dryRun=All: the whole way of a write, but nothing stored."""

from __future__ import annotations

from typing import Any

from tests.integration.samples import (
    CONFIGMAPS,
    DEPLOYMENTS,
    PODS,
    SERVICES,
    apply,
    configmap,
    deployment,
    ok,
    patch,
    pod,
    quiet_revision,
    refused,
    revision,
)
from tests.support.cases import cases
from tests.support.wire import Http

DRY = "?dryRun=All"


async def test_a_dry_create_is_complete_but_not_stored(http: Http) -> None:
    before = await quiet_revision(http)
    made = ok(await http("POST", DEPLOYMENTS + DRY, deployment()), 201)
    assert made["metadata"]["uid"]
    assert made["spec"]["progressDeadlineSeconds"] == 600
    assert not made["metadata"].get("resourceVersion")
    assert (await http("GET", f"{DEPLOYMENTS}/web")).code == 404
    assert await revision(http) == before


async def test_a_dry_create_is_refused_like_a_real_one(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    refused(await http("POST", CONFIGMAPS + DRY, configmap()), 409, "AlreadyExists")
    refused(await http("POST", DEPLOYMENTS + DRY, deployment(replicas=-1)), 422, "Invalid")
    refused(await http("POST", f"/api/v1/namespaces/no/configmaps{DRY}", configmap()), 404, "NotFound")


async def test_dry_writes_of_what_exists_change_nothing(http: Http) -> None:
    stored = ok(await http("POST", DEPLOYMENTS, deployment(finalizers=["example.io/hold"])), 201)
    path, before = f"{DEPLOYMENTS}/web", await quiet_revision(http)
    changed = ok(await http("PUT", path + DRY, deployment(replicas=9)))
    assert (changed["spec"]["replicas"], changed["metadata"]["generation"]) == (9, 2)
    assert changed["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    assert ok(await patch(http, path, {"spec": {"replicas": 8}}, query=DRY))["spec"]["replicas"] == 8
    assert ok(await apply(http, path, deployment(replicas=7), query="&dryRun=All&force=true"))["spec"]["replicas"] == 7
    scale = {"spec": {"replicas": 6}}
    assert ok(await patch(http, f"{path}/scale", scale, query=DRY))["spec"]["replicas"] == 6
    status = {"status": {"replicas": 1}}
    assert ok(await patch(http, f"{path}/status", status, query=DRY))["status"] == {"replicas": 1}
    assert "deletionTimestamp" in ok(await http("DELETE", path + DRY))["metadata"]
    assert "deletionTimestamp" in ok(await http("DELETE", path, {"dryRun": ["All"]}))["metadata"]
    ok(await http("DELETE", DEPLOYMENTS + DRY))
    assert ok(await http("GET", path)) == stored
    assert await revision(http) == before


async def test_a_dry_apply_of_something_new_creates_nothing(http: Http) -> None:
    ok(await apply(http, f"{CONFIGMAPS}/c", configmap(), query="&dryRun=All"), 201)
    assert (await http("GET", f"{CONFIGMAPS}/c")).code == 404


async def test_addresses_shown_by_a_dry_run_are_given_back(http: Http) -> None:
    def service(name: str, **spec: Any) -> Any:
        return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}

    fixed = {"type": "NodePort", "clusterIP": "10.96.0.77", "ports": [{"port": 80, "nodePort": 30123}]}
    for _ in range(2):
        ok(await http("POST", SERVICES + DRY, service("a", **fixed)), 201)
    made = ok(await http("POST", SERVICES, service("b", **fixed)), 201)
    assert (made["spec"]["clusterIP"], made["spec"]["ports"][0]["nodePort"]) == ("10.96.0.77", 30123)


async def test_an_eviction_may_be_tried_out(http: Http) -> None:
    stored = ok(await http("POST", PODS, pod()), 201)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    ok(await http("POST", f"{PODS}/p/eviction{DRY}", eviction), 201)
    ok(await http("POST", f"{PODS}/p/eviction", eviction | {"deleteOptions": {"dryRun": ["All"]}}), 201)
    assert ok(await http("GET", f"{PODS}/p")) == stored


async def test_a_binding_may_be_tried_out(http: Http) -> None:
    stored = ok(await http("POST", PODS, pod()), 201)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    ok(await http("POST", f"{PODS}/p/binding{DRY}", binding), 201)
    assert ok(await http("GET", f"{PODS}/p")) == stored


@cases("exec", "attach", "portforward", "proxy")
async def test_connections_have_no_dry_run(part: str, http: Http) -> None:
    ok(await http("POST", PODS, pod()), 201)
    answer = await http("POST", f"{PODS}/p/{part}{DRY}")
    refused(answer, 400, "BadRequest", "dryRun is not supported")


@cases("POST", "PUT", "PATCH")
async def test_all_is_the_only_value(method: str, http: Http) -> None:
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/c"
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = await http(method, f"{path}?dryRun=Maybe", configmap(), content_type=kind)
    refused(answer, 422, "Invalid", 'dryRun: Unsupported value: ["Maybe"]: supported values: "All"')
