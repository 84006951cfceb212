from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from tests.support.cases import cases

STANDARD = "must be a standard resource type or fully qualified"
FOR_QUOTA = "must be a standard resource for quota"


def quota(overall: Obj, *assignments: tuple[str, Obj], name: str = "team", status: Obj | None = None) -> Obj:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "FederatedResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "overall": overall,
            "staticAssignments": [{"clusterName": cluster, "hard": hard} for cluster, hard in assignments],
        },
        **({"status": status} if status else {}),
    }


ALL = {
    "cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", "requests.cpu": "1", "requests.memory": "1Gi",
    "requests.storage": "1Gi", "requests.ephemeral-storage": "1Gi", "limits.cpu": "1", "limits.memory": "1Gi",
    "limits.ephemeral-storage": "1Gi", "pods": 1, "resourcequotas": "1", "services": "1",
    "replicationcontrollers": "1", "secrets": "1", "persistentvolumeclaims": "1", "configmaps": "1",
    "services.nodeports": "1", "services.loadbalancers": "1", "hugepages-2Mi": "1", "requests.hugepages-2Mi": "1",
    "example.com/gpu": "1", "fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
}  # fmt: skip


@cases(
    (quota(ALL), ""),
    (quota({}, name="n" * 64), f'metadata.name: Invalid value: "{"n" * 64}": must be no more than 63 characters'),
    (
        quota({"apples": "1"}),
        f'[spec.overall[apples]: Invalid value: "apples": {STANDARD}, '
        f'spec.overall[apples]: Invalid value: "apples": {FOR_QUOTA}]',
    ),
    (quota({"storage": "1"}), f'spec.overall[storage]: Invalid value: "storage": {FOR_QUOTA}'),
    (
        quota({"cpu": "-1"}),
        '[spec.overall[cpu]: Invalid value: "-1": must be greater than or equal to 0, '
        'spec.overall[cpu]: Invalid value: "-1": overall is less than assignments]',
    ),
    (quota({"pods": "1500m"}), 'spec.overall[pods]: Invalid value: "1500m": must be an integer'),
    (
        quota({"example.com/gpu": "500m"}),
        'spec.overall[example.com/gpu]: Invalid value: "500m": must be an integer',
    ),
    (quota({"cpu": "1500m"}), ""),
    (
        quota({"cpu": "10"}, ("m1", {"cpu": "6"}), ("m2", {"cpu": "5"})),
        'spec.overall[cpu]: Invalid value: "10": overall is less than assignments',
    ),
    (quota({"cpu": "10"}, ("m1", {"cpu": "6"}), ("m1", {"cpu": "4"})), ""),
    (
        quota({"cpu": "10"}, ("m1", {"memory": "1Gi"})),
        'spec.staticAssignments[0].hard[memory]: Invalid value: "memory": '
        "assignment resourceName is not exist in overall",
    ),
    (
        quota({"cpu": "10"}, ("", {"cpu": "1"})),
        'spec.staticAssignments[0].clusterName: Invalid value: "": must be not empty',
    ),
    (
        quota({"cpu": "10"}, ("m" * 49, {"cpu": "1"})),
        f'spec.staticAssignments[0].clusterName: Invalid value: "{"m" * 49}": must be no more than 48 characters',
    ),
    (
        quota({}, status={"overall": {"cpu": "-1"}, "overallUsed": {"pods": "1m"}}),
        '[status.overall[cpu]: Invalid value: "-1": must be greater than or equal to 0, '
        'status.overallUsed[pods]: Invalid value: "1m": must be an integer]',
    ),
    (
        quota({}, status={"aggregatedStatus": [{"clusterName": "", "hard": {"cpu": "-1"}, "used": {"cpu": "-2"}}]}),
        '[status.aggregatedStatus[0].clusterName: Invalid value: "": must be not empty, '
        'status.aggregatedStatus[0].hard[cpu]: Invalid value: "-1": must be greater than or equal to 0, '
        'status.aggregatedStatus[0].used[cpu]: Invalid value: "-2": must be greater than or equal to 0]',
    ),
)
async def test_a_quota_is_refused_for(obj: Obj, text: str, refused: Any) -> None:
    assert await refused("validate-federatedresourcequota", obj) == text
    assert await refused("validate-federatedresourcequota", obj, quota({})) == text
