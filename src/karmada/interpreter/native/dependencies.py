"""What templates refer to: by way of the Pod they run, mostly."""

from __future__ import annotations

from collections.abc import Callable

from karmada.api.well_known import derived_service_name
from karmada.interpreter.dependencies import pod_dependencies, reference
from karmada.interpreter.native.fields import entries, section
from karmada.interpreter.native.kinds import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    INGRESS,
    JOB,
    POD,
    REPLICA_SET,
    SERVICE_IMPORT,
    STATEFUL_SET,
)
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

Finder = Callable[[Obj], list[Obj]]

_SERVICE_NAME = "kubernetes.io/service-name"


def _of_pod_at(*path: str) -> Finder:
    def find(obj: Obj) -> list[Obj]:
        pod = obj
        for field in path:
            pod = section(pod, field)
        return pod_dependencies(pod, meta.namespace(obj))

    return find


_of_template = _of_pod_at("spec", "template", "spec")


def _stateful_set(obj: Obj) -> list[Obj]:
    """Claims that it makes itself are not waited for."""
    own = {meta.name(claim) for claim in entries(section(obj, "spec"), "volumeClaimTemplates")}
    return [
        found
        for found in _of_template(obj)
        if found["kind"] != "PersistentVolumeClaim" or found["name"] not in own
    ]  # fmt: skip


def _ingress(obj: Obj) -> list[Obj]:
    """Return the certificates of an Ingress; one without a name is reported as it is and fails."""
    namespace = meta.namespace(obj)
    tls = entries(section(obj, "spec"), "tls")
    return [reference("v1", "Secret", namespace, entry.get("secretName") or "") for entry in tls]


def _service_import(obj: Obj) -> list[Obj]:
    """Return the Service that stands in for the imported one, and its addresses."""
    service, namespace = derived_service_name(meta.name(obj)), meta.namespace(obj)
    slices: Obj = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "namespace": namespace,
        "labelSelector": {"matchLabels": {_SERVICE_NAME: service}},
    }
    return [reference("v1", "Service", namespace, service), slices]


FINDERS: dict[GVK, Finder] = {
    DEPLOYMENT: _of_template,
    REPLICA_SET: _of_template,
    STATEFUL_SET: _stateful_set,
    DAEMON_SET: _of_template,
    JOB: _of_template,
    CRON_JOB: _of_pod_at("spec", "jobTemplate", "spec", "template", "spec"),
    POD: _of_pod_at("spec"),
    INGRESS: _ingress,
    SERVICE_IMPORT: _service_import,
}
"""From a template to the references in it."""
