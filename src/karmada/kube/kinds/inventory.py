"""Every built-in kind, one row each: names, scope, strategy, subresources.

A row that the chosen Kubernetes version does not know is left out. Schemas are compiled on first use. Two kinds have
two APIs on one storage: HorizontalPodAutoscaler (v1 and v2, stored as v2) and Event (core and events.k8s.io, stored as
core). Reviews and bindings are rows with the one verb `create`: they are evaluated, not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from karmada.kube.kinds import admissionregistration as webhooks
from karmada.kube.kinds import (
    apiregistration,
    autoscaling,
    autoscaling_v1,
    batch,
    certificates,
    config,
    endpoints,
    events,
    flowcontrol,
    limits,
    namespaces,
    networking,
    nodes,
    pod_subresources,
    pods,
    policy,
    rbac,
    resourceclaims,
    scheduling,
    services,
    storage,
    workloads,
)
from karmada.kube.kinds import customresourcedefinition as crds
from karmada.kube.kinds.filling import take_metadata, take_version
from karmada.kube.kinds.resource import ALL_VERBS, STATUS_VERBS, Reserve, Resource, Strategy, Subresource
from karmada.kube.kinds.scale import SCALE
from karmada.kube.objects import names
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK, GroupResource, GroupVersion
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.node import Node

GROUP_PRIORITIES: dict[str, int] = {
    "apiregistration.k8s.io": 20000,
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
}
VERSION_PRIORITIES: dict[GroupVersion, int] = {GroupVersion("autoscaling", "v2"): 30}
CUSTOM_GROUP_PRIORITY, CUSTOM_VERSION_PRIORITY = 1000, 100
_DEPRECATIONS = {
    "Endpoints": (33, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    "ComponentStatus": (19, "v1 ComponentStatus is deprecated in v1.19+"),
}
"""Deprecations by core kind: the minor version that deprecated it, and the warning."""
_PLAIN_SERVICE_NAMES = 36
"""The minor version from which on Service names are plain DNS labels."""


def group_priority(group: str) -> int:
    return GROUP_PRIORITIES.get(group, CUSTOM_GROUP_PRIORITY)


def version_priority(version: GroupVersion) -> int:
    """Stable before beta before alpha in built-in groups; all equal in others, where only their names decide."""
    known = VERSION_PRIORITIES.get(version)
    if known is not None:
        return known
    if version.group not in GROUP_PRIORITIES:
        return CUSTOM_VERSION_PRIORITY
    if "alpha" in version.version:
        return 1
    return 9 if "beta" in version.version else 15


# --- the parts of a row

N, C = True, False
_ALL, _EXTENSIONS = ("all",), ("api-extensions",)
_CREATE = ("create",)
_CONNECT = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")
_PLAIN = Strategy()
_WITH_SPEC = Strategy(generation=lambda obj: obj.get("spec"))


def _core(kind: str) -> GVK:
    return GVK("", "v1", kind)


_STATUS = Subresource("status", STATUS_VERBS)
_SCALE = Subresource("scale", STATUS_VERBS, SCALE)
_POD_PARTS = (
    Subresource("attach", _CONNECT, _core("PodAttachOptions")),
    Subresource("binding", _CREATE, _core("Binding"), validate=pod_subresources.bound_errors),
    Subresource(
        "ephemeralcontainers",
        STATUS_VERBS,
        project=pod_subresources.take_ephemeral,
        validate=pod_subresources.ephemeral_errors,
    ),
    Subresource("eviction", _CREATE, GVK("policy", "v1", "Eviction"), validate=pod_subresources.bound_errors),
    Subresource("exec", _CONNECT, _core("PodExecOptions")),
    Subresource("log", ("get",)),
    Subresource("portforward", _CONNECT, _core("PodPortForwardOptions")),
    Subresource("proxy", _PROXY, _core("PodProxyOptions")),
    Subresource("resize", STATUS_VERBS, project=pod_subresources.take_resize, validate=pod_subresources.resize_errors),
    _STATUS,
)
_S, _SCALED = (_STATUS,), (_SCALE, _STATUS)
_NODE_PARTS = (Subresource("proxy", _PROXY, _core("NodeProxyOptions")), _STATUS)
_SERVICE_PARTS = (Subresource("proxy", _PROXY, _core("ServiceProxyOptions")), _STATUS)
_FINALIZE = Subresource(
    "finalize", ("update",), project=namespaces.finalize_namespace, validate=namespaces.finalize_errors
)
_TOKEN = Subresource("token", _CREATE, GVK("authentication.k8s.io", "v1", "TokenRequest"))


class Row(NamedTuple):
    version: str
    kind: str
    namespaced: bool
    strategy: Strategy
    short: str = ""
    """Short names, with spaces between them."""
    categories: tuple[str, ...] = ()
    parts: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS

    @property
    def plural(self) -> str:
        name = self.kind.lower()
        if name.endswith("y"):
            return name[:-1] + "ies"
        if name == "endpoints":
            return name
        return name + ("es" if name.endswith("s") else "s")


def _upsert(strategy: Strategy) -> Strategy:
    """Return whether a PUT to a name that does not exist creates."""
    return replace(strategy, create_on_update=True)


_RBAC = {kind: _upsert(strategy) for kind, strategy in rbac.STRATEGIES.items()}
_NO_COLLECTION = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
_RESOURCE_SLICE = replace(
    _WITH_SPEC,
    fields={
        "spec.nodeName": lambda obj: (obj.get("spec") or {}).get("nodeName") or "",
        "spec.driver": lambda obj: (obj.get("spec") or {}).get("driver") or "",
    },
)

_AUTHN, _AUTHZ = "authentication.k8s.io/v1", "authorization.k8s.io/v1"
_ADMISSION, _STORAGE = "admissionregistration.k8s.io/v1", "storage.k8s.io/v1"
_NETWORKING, _RBAC_V1 = "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1"
_FLOW, _DRA = "flowcontrol.apiserver.k8s.io/v1", "resource.k8s.io/v1"

ROWS: tuple[Row, ...] = (
    Row("v1", "Binding", N, _PLAIN, verbs=_CREATE),
    Row("v1", "ComponentStatus", C, _PLAIN, "cs", verbs=("get", "list")),
    Row("v1", "ConfigMap", N, config.CONFIG_MAP, "cm"),
    Row("v1", "Endpoints", N, endpoints.ENDPOINTS, "ep"),
    Row("v1", "Event", N, events.EVENT, "ev"),
    Row("v1", "LimitRange", N, limits.LIMIT_RANGE, "limits"),
    Row("v1", "Namespace", C, namespaces.NAMESPACE, "ns", parts=(_FINALIZE, _STATUS), verbs=_NO_COLLECTION),
    Row("v1", "Node", C, nodes.NODE, "no", parts=_NODE_PARTS),
    Row("v1", "PersistentVolumeClaim", N, storage.PERSISTENT_VOLUME_CLAIM, "pvc", parts=_S),
    Row("v1", "PersistentVolume", C, storage.PERSISTENT_VOLUME, "pv", parts=_S),
    Row("v1", "Pod", N, pods.POD, "po", _ALL, _POD_PARTS),
    Row("v1", "PodTemplate", N, workloads.POD_TEMPLATE),
    Row("v1", "ReplicationController", N, workloads.REPLICATION_CONTROLLER, "rc", _ALL, _SCALED),
    Row("v1", "ResourceQuota", N, limits.RESOURCE_QUOTA, "quota", parts=_S),
    Row("v1", "Secret", N, config.SECRET),
    Row("v1", "ServiceAccount", N, config.SERVICE_ACCOUNT, "sa", parts=(_TOKEN,)),
    Row("v1", "Service", N, services.SERVICE, "svc", _ALL, _SERVICE_PARTS),
    Row("apps/v1", "ControllerRevision", N, workloads.CONTROLLER_REVISION),
    Row("apps/v1", "DaemonSet", N, workloads.DAEMONSET, "ds", _ALL, _S),
    Row("apps/v1", "Deployment", N, workloads.DEPLOYMENT, "deploy", _ALL, _SCALED),
    Row("apps/v1", "ReplicaSet", N, workloads.REPLICASET, "rs", _ALL, _SCALED),
    Row("apps/v1", "StatefulSet", N, workloads.STATEFULSET, "sts", _ALL, _SCALED),
    Row("batch/v1", "CronJob", N, batch.CRONJOB, "cj", _ALL, _S),
    Row("batch/v1", "Job", N, batch.JOB, categories=_ALL, parts=_S),
    Row("autoscaling/v2", "HorizontalPodAutoscaler", N, autoscaling.HORIZONTAL_POD_AUTOSCALER, "hpa", _ALL, _S),
    Row("autoscaling/v1", "HorizontalPodAutoscaler", N, autoscaling_v1.HORIZONTAL_POD_AUTOSCALER_V1, "hpa", _ALL, _S),
    Row(_NETWORKING, "IngressClass", C, networking.INGRESS_CLASS),
    Row(_NETWORKING, "Ingress", N, networking.INGRESS, "ing", parts=_S),
    Row(_NETWORKING, "IPAddress", C, networking.IP_ADDRESS, "ip"),
    Row(_NETWORKING, "NetworkPolicy", N, networking.NETWORK_POLICY, "netpol"),
    Row(_NETWORKING, "ServiceCIDR", C, networking.SERVICE_CIDR, parts=_S),
    Row("discovery.k8s.io/v1", "EndpointSlice", N, endpoints.ENDPOINT_SLICE),
    Row("policy/v1", "PodDisruptionBudget", N, policy.POD_DISRUPTION_BUDGET, "pdb", parts=_S),
    Row(_RBAC_V1, "ClusterRoleBinding", C, _RBAC["ClusterRoleBinding"]),
    Row(_RBAC_V1, "ClusterRole", C, _RBAC["ClusterRole"]),
    Row(_RBAC_V1, "RoleBinding", N, _RBAC["RoleBinding"]),
    Row(_RBAC_V1, "Role", N, _RBAC["Role"]),
    Row(_STORAGE, "CSIDriver", C, storage.CSI_DRIVER),
    Row(_STORAGE, "CSINode", C, storage.CSI_NODE),
    Row(_STORAGE, "CSIStorageCapacity", N, storage.CSI_STORAGE_CAPACITY),
    Row(_STORAGE, "StorageClass", C, storage.STORAGE_CLASS, "sc"),
    Row(_STORAGE, "VolumeAttachment", C, storage.VOLUME_ATTACHMENT, parts=_S),
    Row(_STORAGE, "VolumeAttributesClass", C, storage.VOLUME_ATTRIBUTES_CLASS, "vac"),
    Row("coordination.k8s.io/v1", "Lease", N, nodes.LEASE),
    Row("events.k8s.io/v1", "Event", N, events.EVENT_V1, "ev"),
    Row("scheduling.k8s.io/v1", "PriorityClass", C, scheduling.PRIORITY_CLASS, "pc"),
    Row("node.k8s.io/v1", "RuntimeClass", C, nodes.RUNTIME_CLASS),
    Row(_ADMISSION, "MutatingAdmissionPolicy", C, webhooks.MUTATING_POLICY, categories=_EXTENSIONS),
    Row(_ADMISSION, "MutatingAdmissionPolicyBinding", C, webhooks.MUTATING_BINDING, categories=_EXTENSIONS),
    Row(_ADMISSION, "MutatingWebhookConfiguration", C, webhooks.MUTATING_WEBHOOKS, categories=_EXTENSIONS),
    Row(_ADMISSION, "ValidatingAdmissionPolicy", C, webhooks.VALIDATING_POLICY, categories=_EXTENSIONS, parts=_S),
    Row(_ADMISSION, "ValidatingAdmissionPolicyBinding", C, webhooks.VALIDATING_BINDING, categories=_EXTENSIONS),
    Row(_ADMISSION, "ValidatingWebhookConfiguration", C, webhooks.VALIDATING_WEBHOOKS, categories=_EXTENSIONS),
    Row(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        C,
        certificates.CERTIFICATE_SIGNING_REQUEST,
        "csr",
        parts=_S,
    ),
    Row(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        C,
        crds.CUSTOM_RESOURCE_DEFINITION,
        "crd crds",
        _EXTENSIONS,
        _S,
    ),
    Row("apiregistration.k8s.io/v1", "APIService", C, apiregistration.API_SERVICE, categories=_EXTENSIONS, parts=_S),
    Row(_AUTHN, "SelfSubjectReview", C, _PLAIN, verbs=_CREATE),
    Row(_AUTHN, "TokenReview", C, _PLAIN, verbs=_CREATE),
    Row(_AUTHZ, "LocalSubjectAccessReview", N, _PLAIN, verbs=_CREATE),
    Row(_AUTHZ, "SelfSubjectAccessReview", C, _PLAIN, verbs=_CREATE),
    Row(_AUTHZ, "SelfSubjectRulesReview", C, _PLAIN, verbs=_CREATE),
    Row(_AUTHZ, "SubjectAccessReview", C, _PLAIN, verbs=_CREATE),
    Row(_FLOW, "FlowSchema", C, flowcontrol.FLOW_SCHEMA, parts=_S),
    Row(_FLOW, "PriorityLevelConfiguration", C, flowcontrol.PRIORITY_LEVEL, parts=_S),
    Row(_DRA, "DeviceClass", C, _WITH_SPEC),
    Row(_DRA, "ResourceClaim", N, resourceclaims.RESOURCE_CLAIM, parts=_S),
    Row(_DRA, "ResourceClaimTemplate", N, resourceclaims.RESOURCE_CLAIM_TEMPLATE),
    Row(_DRA, "ResourceSlice", C, _RESOURCE_SLICE),
)


# --- from rows to resources


class _Shared(NamedTuple):
    """Conversion of a kind that is stored as another one, in both directions."""

    storage: GVK
    to_storage: Callable[[Obj], Obj]
    from_storage: Callable[[Obj], Obj]


_CONVERTED: Mapping[GVK, _Shared] = {
    GVK("autoscaling", "v1", "HorizontalPodAutoscaler"): _Shared(
        GVK("autoscaling", "v2", "HorizontalPodAutoscaler"), autoscaling_v1.to_v2, autoscaling_v1.from_v2
    ),
    GVK("events.k8s.io", "v1", "Event"): _Shared(_core("Event"), events.to_core, events.from_core),
}


def builtin_resources(defs: Definitions, reserve: Reserve | None = None, clock: Clock | None = None) -> list[Resource]:
    """Return the built-in kinds of one Kubernetes version; Services get their addresses from `reserve`."""
    known = defs.kinds()
    found = [_resource(row, defs) for row in ROWS if GVK.parse(row.version, row.kind) in known]
    minor = int(defs.version.split(".")[1])
    for resource in found:
        if resource.gvk == _core("Service"):
            resource.strategy = _service_strategy(minor, reserve)
        elif resource.gvk.kind == "CertificateSigningRequest":
            resource.subresources |= _certificate_parts(clock or RealClock())
        since, text = _DEPRECATIONS.get(resource.gvk.kind, (0, ""))
        if text and not resource.gvk.group and minor >= since:
            resource.deprecation = text
    return found


def _resource(row: Row, defs: Definitions) -> Resource:
    gvk = GVK.parse(row.version, row.kind)
    shared = _CONVERTED.get(gvk)
    storage_gvk = shared.storage if shared else gvk
    return Resource(
        gvk=gvk,
        plural=row.plural,
        namespaced=row.namespaced,
        short_names=tuple(row.short.split()),
        categories=row.categories,
        verbs=row.verbs,
        subresources={part.name: part for part in row.parts},
        schema=_schema(defs, gvk),
        strategy=row.strategy,
        storage=storage_gvk,
        storage_resource=GroupResource(storage_gvk.group, row.plural),
        to_storage=shared.to_storage if shared else None,
        from_storage=shared.from_storage if shared else None,
    )


def _schema(defs: Definitions, gvk: GVK) -> Callable[[], Node]:
    @cache
    def schema() -> Node:
        node = defs.node_for(gvk)
        if node is None:
            raise KeyError(f"no definition of {gvk}")
        return node

    return schema


def _service_strategy(minor: int, reserve: Reserve | None) -> Strategy:
    """Service names became plain DNS labels; before, they had to start with a letter."""
    check = names.dns1123_label if minor >= _PLAIN_SERVICE_NAMES else names.dns1035_label
    return replace(services.SERVICE, name_errors=check, reserve=reserve)


def _certificate_parts(clock: Clock) -> dict[str, Subresource]:
    def projecting(prepare: Callable[[Obj, Obj, float], None]) -> Callable[[Obj, Obj], Obj]:
        def project(live: Obj, body: Obj) -> Obj:
            new: Obj = {**copy_json(live), "status": copy_json(body.get("status") or {})}
            prepare(new, live, clock.now())
            take_version(new, body)
            take_metadata(new, body)
            return new

        return project

    approval = projecting(certificates.prepare_approval)
    status = projecting(certificates.prepare_status)
    return {
        "approval": Subresource("approval", project=approval, validate=certificates.validate_approval),
        "status": Subresource("status", project=status, validate=certificates.validate_status),
    }
