"""Bindings as their first version had them, and the way from one version to the other.

v1alpha2 is what is stored. It says more than v1alpha1 can: what has no place there is lost on the way down, and absent
again on the way back. Conversion works on plain objects and shares what it does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from karmada.api.common import Condition, Int32, Raw, ResourceList, Struct
from karmada.api.kind import Resource, kind
from karmada.api.work import V1ALPHA1, V1ALPHA2, TargetCluster
from karmada.kube.objects.types import Obj


class ObjectReference(Struct):
    """The resource that a binding is about."""

    api_version: str
    """The group and version of the resource."""
    kind: str
    """The kind of the resource."""
    name: str
    """The name of the resource."""
    namespace: str = ""
    """The namespace of the resource."""
    resource_version: str = ""
    """The resourceVersion of the resource when the binding was last written."""
    replicas: Int32 = 0
    """How many replicas the resource has in all."""
    resource_per_replicas: ResourceList = {}
    """The resources that one replica needs."""


class ResourceBindingSpec(Struct):
    """What was decided for a resource."""

    resource: ObjectReference
    """The resource."""
    clusters: list[TargetCluster] = []
    """Where the resource goes."""


class AggregatedStatusItem(Struct):
    """How the resource is doing in one cluster."""

    cluster_name: str
    """The cluster."""
    status: Raw | None = None
    """The status of the resource there, or what was taken from it."""
    applied: bool = False
    """Whether the cluster has what was sent."""
    applied_message: str = ""
    """Why it has not."""


class ResourceBindingStatus(Struct):
    """What became of the decision."""

    conditions: list[Condition] = []
    """Whether it is scheduled, and whether the clusters have it."""
    aggregated_status: list[AggregatedStatusItem] = []
    """How the resource is doing in each cluster."""


@kind(
    V1ALPHA1,
    plural="resourcebindings",
    scope="Namespaced",
    short=["rb"],
    subresources=["status"],
    storage=False,
)
class ResourceBinding(Resource, kw_only=True):
    """Which clusters a resource of a namespace goes to."""

    spec: ResourceBindingSpec
    """What was decided."""
    status: ResourceBindingStatus = field(default_factory=ResourceBindingStatus)
    """The observed status."""


@kind(
    V1ALPHA1,
    plural="clusterresourcebindings",
    scope="Cluster",
    short=["crb"],
    subresources=["status"],
    storage=False,
)
class ClusterResourceBinding(Resource, kw_only=True):
    """Which clusters a resource without a namespace goes to."""

    spec: ResourceBindingSpec
    """What was decided."""
    status: ResourceBindingStatus = field(default_factory=ResourceBindingStatus)
    """The observed status."""


# Conversion.

_REFERENCE = ("apiVersion", "kind", "namespace", "name", "resourceVersion")
_STATUS = ("conditions", "aggregatedStatus")
_ITEM = ("clusterName", "status", "applied", "appliedMessage")


def convert(obj: Obj, api_version: str) -> Obj:
    """A binding in another version; raises ValueError for a version that bindings do not have."""
    step = obj.get("apiVersion"), api_version
    if step[0] == step[1] and api_version in (V1ALPHA1, V1ALPHA2):
        return obj
    if step == (V1ALPHA1, V1ALPHA2):
        return to_v1alpha2(obj)
    if step == (V1ALPHA2, V1ALPHA1):
        return from_v1alpha2(obj)
    raise ValueError(f"cannot convert {obj.get('kind')} from {step[0]} to {step[1]}")


async def convert_all(objects: list[Obj], api_version: str) -> list[Obj]:
    """What a served resource calls to convert; it takes the place of a conversion webhook."""
    return [convert(obj, api_version) for obj in objects]


def to_v1alpha2(obj: Obj) -> Obj:
    spec: Obj = obj.get("spec") or {}
    reference: Obj = spec.get("resource") or {}
    made: Obj = {"resource": _kept(reference, _REFERENCE)}
    if "replicas" in reference:
        made["replicas"] = reference["replicas"]
    if reference.get("resourcePerReplicas") is not None:
        made["replicaRequirements"] = {"resourceRequest": reference["resourcePerReplicas"]}
    return _converted(obj, V1ALPHA2, {**made, **_kept(spec, ("clusters",))})


def from_v1alpha2(obj: Obj) -> Obj:
    spec: Obj = obj.get("spec") or {}
    reference = _kept(spec.get("resource") or {}, _REFERENCE)
    if "replicas" in spec:
        reference["replicas"] = spec["replicas"]
    request = (spec.get("replicaRequirements") or {}).get("resourceRequest")
    if request is not None:
        reference["resourcePerReplicas"] = request
    return _converted(obj, V1ALPHA1, {"resource": reference, **_kept(spec, ("clusters",))})


def _converted(obj: Obj, api_version: str, spec: Obj) -> Obj:
    made = {**_kept(obj, ("kind", "metadata")), "apiVersion": api_version, "spec": spec}
    if obj.get("status") is not None:
        status = _kept(obj["status"], _STATUS)
        if status.get("aggregatedStatus"):
            status["aggregatedStatus"] = [_kept(item, _ITEM) for item in status["aggregatedStatus"]]
        made["status"] = status
    return made


def _kept(source: Mapping[str, Any], names: tuple[str, ...]) -> Obj:
    return {name: source[name] for name in names if name in source}
