"""Argo Workflows (argoproj.io)."""

from __future__ import annotations

from karmada.interpreter.dependencies import pod_dependencies
from karmada.interpreter.native.fields import entries, section
from karmada.interpreter.operations import Replicas
from karmada.interpreter.requirements import node_claim
from karmada.interpreter.thirdparty.common import references, retain_suspend, revise_at
from karmada.interpreter.thirdparty.kind import Kind, Needs
from karmada.interpreter.thirdparty.values import at, required_number
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj


def _replicas(obj: Obj, _: Needs) -> Replicas:
    """As many Pods as it runs at once; what they need is known only of their nodes."""
    spec = section(obj, "spec")
    count = 1 if spec.get("parallelism") is None else required_number(spec["parallelism"], "spec.parallelism")
    claim = node_claim(spec)
    return Replicas(int(count), None if claim is None else {"nodeClaim": claim})


def _healthy(obj: Obj) -> bool:
    return section(obj, "status").get("phase") not in (None, "", "Error", "Failed")


def _retain(desired: Obj, observed: Obj) -> Obj:
    """Retain the cluster's status, which is no subresource."""
    retained = retain_suspend(desired, observed)
    return retained if observed.get("status") is None else {**retained, "status": observed["status"]}


def _dependencies(obj: Obj) -> list[Obj]:
    """Return what its spec has in common with that of a Pod, and the account of its executor."""
    spec, namespace = section(obj, "spec"), meta.namespace(obj)
    shared = ("volumes", "imagePullSecrets", "serviceAccountName")
    claims = [meta.name(claim) for claim in entries(spec, "volumeClaimTemplates")]
    # Karmada reads the name of a volume's Secret from a field of another name; both count here
    secrets = [at(volume, "secret", "name") for volume in entries(spec, "volumes")]
    return [
        *pod_dependencies({field: spec[field] for field in shared if field in spec}, namespace),
        *references(obj, "ServiceAccount", [at(spec, "executor", "serviceAccountName")]),
        *references(obj, "PersistentVolumeClaim", claims),
        *references(obj, "Secret", secrets),
    ]


KINDS = (
    Kind(
        gvk=GVK("argoproj.io", "v1alpha1", "Workflow"),
        replicas=_replicas,
        revise=revise_at("parallelism"),
        retain=_retain,
        healthy=_healthy,
        dependencies=_dependencies,
    ),
)
