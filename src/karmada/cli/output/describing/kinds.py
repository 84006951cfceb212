"""The describer of each kind, and the version of the API that it reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from karmada.cli.output.describing import (
    access,
    autoscaling,
    certificates,
    claims,
    config,
    ingresses,
    jobs,
    namespaces,
    network_policies,
    nodes,
    pods,
    policies,
    services,
    storage,
    workloads,
)
from karmada.cli.output.describing.generic import generic
from karmada.cli.output.describing.sheet import Sheet

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

Describer = Callable[[Sheet, "Obj", "Around"], Awaitable[Any]]


class Entry(NamedTuple):
    version: str
    describe: Describer
    events: bool = True
    """True if its events follow."""


_RBAC, _NETWORKING, _STORAGE = "rbac.authorization.k8s.io", "networking.k8s.io", "storage.k8s.io"
KINDS: dict[tuple[str, str], Entry] = {
    ("", "Pod"): Entry("v1", pods.pod),
    ("", "ReplicationController"): Entry("v1", workloads.replica_set),
    ("", "Secret"): Entry("v1", config.secret, events=False),
    ("", "ConfigMap"): Entry("v1", config.config_map),
    ("", "Service"): Entry("v1", services.service),
    ("", "ServiceAccount"): Entry("v1", config.service_account),
    ("", "Node"): Entry("v1", nodes.node, events=False),
    ("", "LimitRange"): Entry("v1", namespaces.limit_range, events=False),
    ("", "ResourceQuota"): Entry("v1", namespaces.quota, events=False),
    ("", "Namespace"): Entry("v1", namespaces.namespace, events=False),
    ("", "PersistentVolume"): Entry("v1", storage.volume),
    ("", "PersistentVolumeClaim"): Entry("v1", claims.claim),
    ("", "Endpoints"): Entry("v1", services.endpoints),
    ("discovery.k8s.io", "EndpointSlice"): Entry("v1", services.endpoint_slice),
    ("autoscaling", "HorizontalPodAutoscaler"): Entry("v2", autoscaling.autoscaler),
    (_NETWORKING, "Ingress"): Entry("v1", ingresses.ingress),
    (_NETWORKING, "IngressClass"): Entry("v1", ingresses.ingress_class),
    (_NETWORKING, "NetworkPolicy"): Entry("v1", network_policies.network_policy, events=False),
    (_NETWORKING, "ServiceCIDR"): Entry("v1", ingresses.service_cidr),
    (_NETWORKING, "IPAddress"): Entry("v1", ingresses.ip_address),
    ("batch", "Job"): Entry("v1", jobs.job),
    ("batch", "CronJob"): Entry("v1", jobs.cron_job),
    ("apps", "Deployment"): Entry("v1", workloads.deployment),
    ("apps", "ReplicaSet"): Entry("v1", workloads.replica_set),
    ("apps", "StatefulSet"): Entry("v1", workloads.stateful_set),
    ("apps", "DaemonSet"): Entry("v1", workloads.daemon_set),
    ("certificates.k8s.io", "CertificateSigningRequest"): Entry("v1", certificates.signing_request),
    (_STORAGE, "StorageClass"): Entry("v1", storage.storage_class),
    (_STORAGE, "VolumeAttributesClass"): Entry("v1", storage.attributes_class),
    (_STORAGE, "CSINode"): Entry("v1", storage.csi_node),
    ("policy", "PodDisruptionBudget"): Entry("v1", policies.disruption_budget),
    ("scheduling.k8s.io", "PriorityClass"): Entry("v1", policies.priority_class),
    (_RBAC, "Role"): Entry("v1", access.role, events=False),
    (_RBAC, "ClusterRole"): Entry("v1", access.role, events=False),
    (_RBAC, "RoleBinding"): Entry("v1", access.role_binding, events=False),
    (_RBAC, "ClusterRoleBinding"): Entry("v1", access.role_binding, events=False),
}

_GENERIC = Entry("", generic)


def entry(group: str, kind: str) -> Entry:
    """`version` is empty for any version."""
    return KINDS.get((group, kind), _GENERIC)


async def describe(obj: Obj, around: Around) -> str:
    """Return the description; `obj` is in the version that its entry wants.

    An object that does not have the shape of its kind is shown field by field.
    """
    group, slash, _ = obj["apiVersion"].partition("/")
    try:
        return await _described(entry(group if slash else "", obj["kind"]), obj, around)
    except (AttributeError, LookupError, TypeError, ValueError):
        return await _described(_GENERIC, obj, around)


async def _described(entry: Entry, obj: Obj, around: Around) -> str:
    sheet = Sheet()
    await entry.describe(sheet, obj, around)
    if entry.events:
        await around.write_events(sheet, obj)
    return sheet.text()
