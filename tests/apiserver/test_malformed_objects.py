"""Objects of the wrong shape are refused as such: they are the caller's fault and not the server's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from tests.support.karmada_server import serving
from tests.support.objects import kube_object

WRONG: list[Any] = [None, "", "(((", 5, -1, True, [], {}, [None], [5], [[]], {"a": None}, {"x": {}}, 1e300, 2**63]
MISSING_KIND = "Object 'Kind' is missing in"
"""What clients know as an error of the server; see the rules of Works."""

JOB = kube_object("batch/v1", "Job", "x", labels={"a": "b"}, annotations={"a": "b"}) | {
    "spec": {
        "selector": {"matchLabels": {"controller-uid": "x"}},
        "template": {"metadata": {"labels": {"controller-uid": "x"}}},
    },
}
ACCOUNT = kube_object("v1", "ServiceAccount", "x", secrets=[{"name": "x-token-1"}])
SERVICE = kube_object("v1", "Service", "x", spec={"clusterIP": "10.0.0.1"})
AUTOSCALER = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
    "minReplicas": 1,
    "maxReplicas": 3,
    "metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    ],
    "behavior": {"scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}},
}
REGISTRY = {
    "targetCluster": {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["x"]}]}},
    "resourceSelectors": [{"apiVersion": "v1", "kind": "Pod", "namespace": "a"}],
    "backendStore": {"openSearch": {"addresses": ["https://x"], "secretRef": {"namespace": "a", "name": "b"}}},
}
OBJECTS = [
    (GVR("work.karmada.io", "v1alpha1", "works"), "Work", {"workload": {"manifests": [JOB, ACCOUNT, SERVICE]}}),
    (GVR("autoscaling.karmada.io", "v1alpha1", "federatedhpas"), "FederatedHPA", AUTOSCALER),
    (GVR("search.karmada.io", "v1alpha1", "resourceregistries"), "ResourceRegistry", REGISTRY),
]


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with serving(folder) as server:
        yield server.client(user_agent="tests")


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def spoilt(obj: Any, path: tuple[str | int, ...], value: Any) -> Any:
    made = copy_json(obj)
    holder = made
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return made


async def test_no_wrong_shape_is_a_fault_of_the_server(client: Client) -> None:
    tried, faults = 0, []
    for gvr, kind, spec in OBJECTS:
        namespace = {} if kind == "ResourceRegistry" else {"namespace": "default"}
        obj = {"apiVersion": f"{gvr.group}/{gvr.version}", "kind": kind, "metadata": {"name": "a", **namespace}}
        obj["spec"] = spec  # type: ignore[assignment]
        await client.create(gvr, obj, dry_run=True)
        for path in places(spec):
            for value in WRONG:
                tried += 1
                try:
                    await client.create(gvr, spoilt(obj, ("spec", *path), value), dry_run=True)
                except ApiError as error:
                    if error.http_code >= 500 and MISSING_KIND not in str(error):
                        faults.append((kind, path, value, str(error)))
                except (AttributeError, LookupError, TypeError, ValueError) as error:  # code 500 for clients
                    faults.append((kind, path, value, repr(error)))
    assert tried > 500
    assert faults == []


async def test_a_manifest_that_cannot_be_marked_is_a_bad_request(client: Client) -> None:
    gvr, kind, _ = OBJECTS[0]
    metadata = {"name": "a", "namespace": "default"}
    for part, value in (
        ("kind", 5),
        ("metadata", [1]),
        ("metadata", {"labels": 5}),
        ("metadata", {"annotations": "x"}),
    ):
        work = {"apiVersion": f"{gvr.group}/{gvr.version}", "kind": kind, "metadata": metadata}
        manifest = {**SERVICE, part: value}
        with pytest.raises(ApiError, match=rf"spec\.workload\.manifests\[0\]\.{part}") as caught:
            await client.create(gvr, {**work, "spec": {"workload": {"manifests": [manifest]}}})
        assert caught.value.http_code == 400
