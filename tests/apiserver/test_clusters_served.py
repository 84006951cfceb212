"""Clusters as the server keeps them: what a write fills in, keeps, refuses, and what it leaves alone."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.api.cluster import Cluster, default_resource_models
from karmada.api.crds import crd_of
from karmada.features import default_gates
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.cases import cases
from tests.support.karmada_server import clusters_only, serving
from tests.support.objects import kube_object
from tests.support.wire import Http

CLUSTERS = Cluster.gvr
CRDS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
PATH = "/apis/cluster.karmada.io/v1alpha1/clusters"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
START = float(int(time.time()))
NOW = rfc3339(START)


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[ApiServer]:
    async with clusters_only(folder, FakeClock(start=START)) as server:
        yield server


def cluster(name: str = "m1", **spec: Any) -> Obj:
    return kube_object(Cluster.gvk.api_version, "Cluster", name, spec={"syncMode": "Push", **spec})


# --- what a write fills in and keeps


async def test_a_new_cluster_gets_grades_a_generation_and_no_status(client: Client) -> None:
    made = await client.create(CLUSTERS, {**cluster(), "status": {"kubernetesVersion": "v9"}})
    assert made["spec"]["resourceModels"] == default_resource_models()
    assert made["metadata"]["generation"] == 1
    assert not made.get("status")


async def test_without_the_gate_a_cluster_gets_no_grades(folder: Path) -> None:
    gates = default_gates()
    gates.set("CustomizedClusterResourceModeling=false")
    async with serving(folder, gates=gates) as server:
        made = await server.client().create(CLUSTERS, cluster())
        assert "resourceModels" not in made["spec"]


async def test_grades_of_ones_own_are_ordered_and_made_whole(client: Client) -> None:
    def grade(number: int, low: str, high: str) -> Obj:
        return {"grade": number, "ranges": [{"name": "cpu", "min": low, "max": high}]}

    made = await client.create(CLUSTERS, cluster(resourceModels=[grade(2, "4", "8"), grade(1, "1", "4")]))
    assert made["spec"]["resourceModels"] == [grade(1, "0", "4"), grade(2, "4", "9223372036854775807")]


async def test_an_update_brings_no_grades_back(client: Client) -> None:
    made = await client.create(CLUSTERS, cluster())
    spec = {key: value for key, value in made["spec"].items() if key != "resourceModels"}
    updated = await client.update(CLUSTERS, {**made, "spec": spec})
    assert "resourceModels" not in updated["spec"]
    assert updated["metadata"]["generation"] == 2


async def test_taints_get_their_time_and_a_zone_becomes_the_zones(client: Client) -> None:
    taints = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoSchedule"}]
    made = await client.create(CLUSTERS, cluster(taints=taints, zone="eu-1"))
    assert made["spec"]["taints"] == [{**taints[0], "timeAdded": NOW}, taints[1]]
    assert made["spec"]["zones"] == ["eu-1"]
    assert "zone" not in made["spec"]


async def test_the_generation_follows_the_spec_alone(client: Client) -> None:
    made = await client.create(CLUSTERS, cluster())
    labelled = await client.patch(CLUSTERS, "m1", "", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    moved = await client.patch(CLUSTERS, "m1", "", {"spec": {"region": "eu"}})
    assert moved["metadata"]["generation"] == 2
    same = await client.update(CLUSTERS, moved)
    assert same["metadata"]["resourceVersion"] == moved["metadata"]["resourceVersion"]
    assert made["metadata"]["uid"] == same["metadata"]["uid"]


async def test_an_update_needs_no_resource_version_but_minds_a_wrong_one(client: Client) -> None:
    made = await client.create(CLUSTERS, cluster())
    updated = await client.update(CLUSTERS, cluster(region="eu", resourceModels=made["spec"]["resourceModels"]))
    assert updated["spec"]["region"] == "eu"
    with pytest.raises(Conflict):
        await client.update(CLUSTERS, made)


async def test_an_update_creates_nothing(client: Client) -> None:
    with pytest.raises(NotFound) as caught:
        await client.update(CLUSTERS, cluster("nobody"))
    assert caught.value.message == 'clusters.cluster.karmada.io "nobody" not found'


# --- status


async def test_an_update_leaves_the_status_alone(client: Client) -> None:
    await client.create(CLUSTERS, cluster())
    await client.patch(CLUSTERS, "m1", "", {"status": {"kubernetesVersion": "v1.34.0"}}, subresource="status")
    updated = await client.update(CLUSTERS, {**cluster(region="eu"), "status": {"kubernetesVersion": "v0"}})
    assert updated["status"] == {"kubernetesVersion": "v1.34.0"}


@cases("update", "patch")
async def test_a_status_write_stores_the_status_only(write: str, client: Client) -> None:
    made = await client.create(CLUSTERS, cluster(taints=[{"key": "cordoned", "effect": "NoSchedule"}]))
    brought = {
        **made,
        "metadata": {**made["metadata"], "labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a/b"]},
        "spec": {"syncMode": "Push", "taints": [], "region": "eu", "apiEndpoint": "https://127.0.0.1:1"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "", "message": ""}]},
    }
    if write == "update":
        stored = await client.update_status(CLUSTERS, brought)
    else:
        stored = await client.patch(CLUSTERS, "m1", "", brought, subresource="status")
    assert stored["status"] == brought["status"]
    assert stored["spec"] == made["spec"]
    for field in ("labels", "annotations", "finalizers", "generation"):
        assert stored["metadata"].get(field) == made["metadata"].get(field)
    changed = await client.patch(CLUSTERS, "m1", "", {"spec": {"taints": []}})
    assert changed["status"] == brought["status"], "what the status holds stops no later update"


async def test_a_status_write_needs_no_spec(client: Client) -> None:
    made = await client.create(CLUSTERS, cluster())
    stored = await client.update_status(
        CLUSTERS, {key: made[key] for key in ("apiVersion", "kind", "metadata")} | {"status": {"remedyActions": ["x"]}}
    )
    assert stored["spec"] == made["spec"]
    assert stored["status"] == {"remedyActions": ["x"]}


async def test_what_a_status_says_is_bounded(client: Client) -> None:
    made = await client.create(CLUSTERS, cluster())
    long = "v" * 100_000
    said = {
        "kubernetesVersion": long,
        "apiEnablements": [{"groupVersion": long, "resources": [{"name": long, "kind": long}]}],
        "conditions": [{"type": "Ready", "status": "True", "reason": long, "message": long}],
        "remedyActions": ["x"] * 5000,
        "resourceSummary": {"allocatable": {"cpu": "1", long: "1"}},
    }
    stored = (await client.update_status(CLUSTERS, {**made, "status": said}))["status"]
    cut = "v" * 255 + "…"
    assert stored["kubernetesVersion"] == cut
    assert stored["apiEnablements"] == [{"groupVersion": cut, "resources": [{"name": cut, "kind": cut}]}]
    [condition] = stored["conditions"]
    assert (condition["reason"], len(condition["message"])) == (cut, 32768)
    assert len(stored["remedyActions"]) == 256
    assert stored["resourceSummary"]["allocatable"] == {"cpu": "1"}


async def test_a_status_write_creates_nothing(client: Client) -> None:
    with pytest.raises(NotFound):
        await client.update_status(CLUSTERS, cluster("nobody"))


# --- what is refused


@cases(
    ("m.1", {}, 'metadata.name: Invalid value: "m.1": must not contain dots'),
    (
        "a" * 49,
        {},
        f'metadata.name: Invalid value: "{"a" * 49}": must be no more than 48 characters',
    ),
    (
        "m1",
        {"syncMode": ""},
        '[spec.syncMode: Required value, spec.syncMode: Unsupported value: "": supported values: "Pull", "Push"]',
    ),
    ("m1", {"syncMode": "Both"}, 'spec.syncMode: Unsupported value: "Both": supported values: "Pull", "Push"'),
    (
        "m1",
        {"apiEndpoint": "https://m1?x=y"},
        'spec.apiEndpoint: Invalid value: "https://m1?x=y": query parameters are not permitted in the URL',
    ),
    (
        "m1",
        {"secretRef": {"namespace": "", "name": ""}},
        "[spec.secretRef.namespace: Required value, spec.secretRef.name: Required value]",
    ),
    (
        "m1",
        {"proxyURL": "ftp://proxy"},
        'spec.proxyURL: Invalid value: "ftp://proxy": unsupported scheme "ftp", must be http, https, or socks5',
    ),
    ("m1", {"zone": "a b"}, 'spec.Zone: Invalid value: "a b": a valid label must be'),
    ("m1", {"zone": "a", "zones": ["b"]}, "Zone and Zones cannot co-exist"),
    (
        "m1",
        {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]},
        'spec.taints[0].effect: Unsupported value: "PreferNoSchedule": supported values: "NoSchedule", "NoExecute"',
    ),
    (
        "m1",
        {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2},
        'spec.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}: taints must be unique by key and '
        "effect pair",
    ),
    (
        "m1",
        {"resourceModels": [{"grade": 1, "ranges": []}, {"grade": 1, "ranges": []}]},
        "The grade of each models should not be the same",
    ),
)
async def test_a_bad_cluster_is_refused_with_the_cause(name: str, spec: Obj, why: str, client: Client) -> None:
    with pytest.raises(Invalid) as caught:
        await client.create(CLUSTERS, cluster(name, **spec))
    error = caught.value
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message.startswith(f'Cluster.cluster.karmada.io "{name}" is invalid: ')
    assert why in error.message
    with pytest.raises(NotFound):
        await client.get(CLUSTERS, name)


async def test_an_update_is_judged_as_a_whole(client: Client) -> None:
    made = await client.create(CLUSTERS, cluster())
    with pytest.raises(Invalid, match=r"spec\.proxyURL"):
        await client.update(CLUSTERS, {**made, "spec": {**made["spec"], "proxyURL": "ftp://x"}})


MISSHAPEN: list[Any] = [None, "text", 7, [], {}, {"a": 1}, [1], [{}], [None], True]


async def test_misshapen_clusters_never_break_the_server(client: Client) -> None:
    for field in ("spec", "status", "syncMode", "secretRef", "proxyHeader", "zones", "taints"):
        for value in MISSHAPEN:
            obj = cluster()
            (obj if field in ("spec", "status") else obj["spec"])[field] = value
            try:
                await client.create(CLUSTERS, obj)
                await client.delete(CLUSTERS, "m1")
            except (Invalid, BadRequest):
                with pytest.raises(NotFound):
                    await client.get(CLUSTERS, "m1")


async def test_misshapen_grades_are_refused(client: Client) -> None:
    for models in (
        *([value] for value in MISSHAPEN),
        [{"grade": "x", "ranges": []}],
        [{"grade": 1, "ranges": ["x"]}],
        [{"grade": 1, "ranges": [{"name": "cpu"}]}],
        [{"grade": 1, "ranges": [{"name": "cpu", "min": "abc", "max": "1"}]}],
        [{"grade": 1, "ranges": [{"name": "cpu", "min": [], "max": {}}]}],
        {"a": "b"},
    ):
        with pytest.raises((Invalid, BadRequest)):
            await client.create(CLUSTERS, cluster(resourceModels=models))


# --- how it is served


async def test_the_table_has_ten_columns_five_of_them_for_wide_output(http: Http, client: Client) -> None:
    await client.create(CLUSTERS, cluster(zones=["a", "b"], apiEndpoint="https://m1", proxyURL="http://proxy"))
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "kubernetesVersion": "v1.34.0"}
    await client.patch(CLUSTERS, "m1", "", {"status": ready}, subresource="status")
    table = (await http("GET", PATH, headers=TABLE)).json()
    assert [(c["name"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", 0), ("Version", 0), ("Mode", 0), ("Ready", 0), ("Age", 0),
        ("Zones", 1), ("Region", 1), ("Provider", 1), ("API-Endpoint", 1), ("Proxy-URL", 1),
    ]  # fmt: skip
    assert {c["type"] for c in table["columnDefinitions"]} == {"string"}
    [row] = table["rows"]
    assert row["cells"] == [
        "m1", "v1.34.0", "Push", "True", "0s", "a,b", "<none>", "<none>", "https://m1", "http://proxy",
    ]  # fmt: skip


async def test_clusters_are_selected_by_name_and_by_nothing_else(http: Http, client: Client) -> None:
    for name in ("m1", "m2"):
        await client.create(CLUSTERS, cluster(name))
    found = (await http("GET", f"{PATH}?fieldSelector=metadata.name%3Dm2")).json()
    assert [item["metadata"]["name"] for item in found["items"]] == ["m2"]
    assert (await http("GET", f"{PATH}?fieldSelector=spec.region%3Deu")).code == 400


async def test_every_kind_of_patch_is_taken(http: Http, client: Client) -> None:
    await client.create(CLUSTERS, cluster())
    for number, kind in enumerate(("merge-patch", "strategic-merge-patch", "json-patch")):
        patch: Any = {"spec": {"region": f"eu-{number}"}}
        if kind == "json-patch":
            patch = [{"op": "replace", "path": "/spec/region", "value": f"eu-{number}"}]
        answer = await http("PATCH", f"{PATH}/m1", patch, content_type=f"application/{kind}+json")
        assert answer.code == 200, answer.body
        assert answer.json()["spec"]["region"] == f"eu-{number}"


async def test_discovery_shows_status_and_proxy(http: Http) -> None:
    listed = (await http("GET", "/apis/cluster.karmada.io/v1alpha1")).json()["resources"]
    by_name = {each["name"]: each for each in listed}
    assert by_name["clusters"]["singularName"] == "cluster"
    assert by_name["clusters"]["namespaced"] is False
    assert set(by_name["clusters/status"]["verbs"]) == {"get", "patch", "update"}
    assert by_name["clusters/proxy"]["kind"] == "ClusterProxyOptions"
    assert set(by_name["clusters/proxy"]["verbs"]) == {"create", "delete", "get", "patch", "update"}


async def test_no_definition_takes_the_place_of_clusters(client: Client) -> None:
    await client.create(CLUSTERS, cluster())
    await client.create(CRDS, crd_of(Cluster))
    refused = await client.create(CLUSTERS, cluster("m2", zone="a"))
    assert refused["spec"]["zones"] == ["a"], "the rules are still those of clusters"
    await client.delete(CRDS, "clusters.cluster.karmada.io")
    assert (await client.get(CLUSTERS, "m1"))["metadata"]["name"] == "m1"


async def test_a_cluster_is_deleted_and_may_come_again(client: Client) -> None:
    await client.create(CLUSTERS, cluster())
    with pytest.raises(AlreadyExists):
        await client.create(CLUSTERS, cluster())
    await client.delete(CLUSTERS, "m1")
    await client.create(CLUSTERS, cluster())


async def test_errors_that_are_no_statuses_have_no_reason(http: Http, client: Client) -> None:
    await client.create(CLUSTERS, cluster())
    answer = await http("GET", f"{PATH}/m1/proxy/api")
    assert answer.code == 500
    refusal = answer.json()
    assert refusal["message"] == "API endpoint of cluster m1 should not be empty"
    assert "reason" not in refusal
