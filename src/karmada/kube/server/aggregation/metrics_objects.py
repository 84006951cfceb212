"""The metrics APIs: their names, what discovery says of them, and the objects that announce them in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from karmada.kube.objects import rbac
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.gvrs import APISERVICES
from karmada.kube.objects.types import Obj
from karmada.kube.server.aggregation.backends import ServiceName

METRICS: Final = GroupVersion("metrics.k8s.io", "v1beta1")
CUSTOM: Final = (GroupVersion("custom.metrics.k8s.io", "v1beta2"), GroupVersion("custom.metrics.k8s.io", "v1beta1"))
EXTERNAL: Final = GroupVersion("external.metrics.k8s.io", "v1beta1")
METRICS_RESOURCES: Final[tuple[Obj, ...]] = (
    {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]},
    {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]},
)


def missing(metric: str, resource: str, name: str = "") -> ApiError:
    return NotFound(f"the server could not find the metric {metric} for {resource}" + (f" {name}" if name else ""))


def service(name: ServiceName, labels: Mapping[str, str]) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name.name, "namespace": name.namespace, "labels": labels},
        "spec": {
            "selector": labels,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}],
        },
    }


def api_service(
    version: GroupVersion,
    name: ServiceName,
    priorities: tuple[int, int],
    labels: Mapping[str, str],
    *,
    skip_verify: bool = False,
) -> Obj:
    """`priorities`: of the group, and of the version in it."""
    group_priority, version_priority = priorities
    return {
        "apiVersion": APISERVICES.api_version,
        "kind": "APIService",
        "metadata": {"name": f"{version.version}.{version.group}", "labels": labels},
        "spec": {
            "group": version.group,
            "version": version.version,
            "service": {"namespace": name.namespace, "name": name.name, "port": 443},
            **({"insecureSkipTLSVerify": True} if skip_verify else {}),
            "groupPriorityMinimum": group_priority,
            "versionPriority": version_priority,
        },
    }


def reader_role(labels: Mapping[str, str]) -> Obj:
    """Return the rules for metrics: the right to view a namespace includes the metrics of its pods."""
    into = {f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in ("admin", "edit", "view")}
    rule = {"apiGroups": [METRICS.group], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}
    return rbac.role("system:aggregated-metrics-reader", [rule], labels={**labels, **into})
