"""The kinds in a real server, without a CRD in its store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from karmada.api.cluster import MAX_QUANTITY, Cluster, default_resource_models
from karmada.api.policy import PropagationPolicy, PropagationSpec, ResourceSelector
from karmada.api.resources import karmada_resources, resources_of
from karmada.api.search import ResourceRegistry
from karmada.api.work import ResourceBinding
from karmada.api.work_v1alpha1 import ResourceBinding as OldResourceBinding
from karmada.kube.client.client import Client
from karmada.kube.kinds.tables import table
from karmada.kube.objects.errors import Invalid
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.openapi import v3
from tests.support.objects import kube_object

TEMPLATE = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[ApiServer]:
    server = ApiServer(ServerConfig(data_dir=folder, storage="memory://", port=0))
    server.registry.add(karmada_resources())
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def client(server: ApiServer) -> Client:
    return server.client(user_agent="tests")


async def test_a_policy_is_stored_with_its_defaults(client: Client) -> None:
    selector = ResourceSelector(api_version="apps/v1", kind="Deployment", name="web")
    policy = PropagationPolicy(spec=PropagationSpec(resource_selectors=[selector])).to_obj()
    policy["metadata"] = {"namespace": "default", "name": "web"}
    stored = await client.create(PropagationPolicy.gvr, policy)
    assert stored["spec"]["conflictResolution"] == "Abort"
    assert PropagationPolicy.of(stored).spec.scheduler_name == "default-scheduler"


async def test_a_bad_policy_is_refused_with_the_path_of_what_is_wrong(client: Client) -> None:
    policy = kube_object("policy.karmada.io/v1alpha1", "PropagationPolicy", "bad", "default") | {
        "spec": {"resourceSelectors": [], "preemption": "Sometimes"}
    }
    with pytest.raises(Invalid) as caught:
        await client.create(PropagationPolicy.gvr, policy)
    assert "spec.resourceSelectors" in caught.value.message
    assert 'spec.preemption: Unsupported value: "Sometimes"' in caught.value.message


def binding() -> Obj:
    return kube_object(ResourceBinding.gvk.api_version, "ResourceBinding", "web-deployment", "default") | {
        "spec": {"resource": TEMPLATE, "replicas": 2, "clusters": [{"name": "m1", "replicas": 2}]}
    }


async def test_a_binding_is_read_in_its_first_version(client: Client) -> None:
    await client.create(ResourceBinding.gvr, binding())
    old = await client.get(OldResourceBinding.gvr, "web-deployment", "default")
    assert old["apiVersion"] == "work.karmada.io/v1alpha1"
    assert old["spec"] == {"resource": {**TEMPLATE, "replicas": 2}, "clusters": [{"name": "m1", "replicas": 2}]}


async def test_a_binding_written_in_its_first_version_is_stored_in_the_second(client: Client) -> None:
    spec = {"resource": {**TEMPLATE, "replicas": 2, "resourcePerReplicas": {"cpu": "1"}}}
    await client.create(
        OldResourceBinding.gvr, {**binding(), "apiVersion": OldResourceBinding.gvk.api_version, "spec": spec}
    )
    new = ResourceBinding.of(await client.get(ResourceBinding.gvr, "web-deployment", "default"))
    assert new.spec.replicas == 2
    assert new.spec.replica_requirements is not None
    assert new.spec.replica_requirements.resource_request == {"cpu": "1"}
    assert new.spec.conflict_resolution == "Abort"


def test_explain_finds_our_descriptions(server: ApiServer) -> None:
    document = v3.build(resources_of(PropagationPolicy), server.definitions, "v1.36.0")
    schema = document["components"]["schemas"]["io.karmada.policy.v1alpha1.PropagationPolicy"]
    assert schema["description"] == "Which resources of a namespace go to which clusters."
    assert schema["properties"]["spec"]["properties"]["priority"]["description"].startswith("Which of several policies")


def rows(obj: Obj, cls: type[Cluster] | type[ResourceRegistry]) -> tuple[list[str], list[object]]:
    made = table(resources_of(cls)[0], [obj], now=1_700_000_060.0, list_meta={})
    return [column["name"] for column in made["columnDefinitions"]], made["rows"][0]["cells"]


def test_clusters_show_ten_columns() -> None:
    obj = {
        "metadata": {"name": "m1", "creationTimestamp": "2023-11-14T22:13:20Z"},
        "spec": {"syncMode": "Push", "zones": ["a", "b"], "apiEndpoint": "https://m1:6443"},
        "status": {"kubernetesVersion": "v1.36.0", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    columns, cells = rows(obj, Cluster)
    assert columns == [
        "Name", "Version", "Mode", "Ready", "Age", "Zones", "Region", "Provider", "API-Endpoint", "Proxy-URL",
    ]  # fmt: skip
    assert cells == ["m1", "v1.36.0", "Push", "True", "60s", "a,b", "<none>", "<none>", "https://m1:6443", "<none>"]


def test_a_cluster_without_heartbeats_is_unknown() -> None:
    _, cells = rows({"metadata": {"name": "m1"}, "spec": {"syncMode": "Pull"}}, Cluster)
    assert cells == ["m1", "", "Pull", "Unknown", "<unknown>", "<none>", "<none>", "<none>", "", "<none>"]


def test_registries_show_their_name_and_date() -> None:
    columns, _ = rows({"metadata": {"name": "all", "creationTimestamp": "2023-11-14T22:13:20Z"}}, ResourceRegistry)
    assert columns == ["Name", "Created At"]


def test_the_default_grades_leave_no_gap_from_nothing_to_no_limit() -> None:
    models = default_resource_models()
    assert [model["grade"] for model in models] == list(range(9))
    for index, name in enumerate(("cpu", "memory")):
        ranges = [model["ranges"][index] for model in models]
        assert {each["name"] for each in ranges} == {name}
        assert ranges[0]["min"] == "0"
        assert ranges[-1]["max"] == MAX_QUANTITY
        assert all(before["max"] == after["min"] for before, after in pairwise(ranges))
        assert all(Quantity.parse(each["min"]) < Quantity.parse(each["max"]) for each in ranges)
    assert models[1]["ranges"][1] == {"name": "memory", "min": "4Gi", "max": "16Gi"}
