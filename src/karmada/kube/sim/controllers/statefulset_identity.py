"""The identity of a StatefulSet's pods: ordinals, names, labels and claims."""

from __future__ import annotations

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.podcontrol import pod_from
from karmada.kube.sim.controllers.revisions import REVISION_LABEL

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
_INDEX_SINCE = 28


def first_ordinal(workload: Obj) -> int:
    return int((workload["spec"].get("ordinals") or {}).get("start") or 0)


def replicas_of(workload: Obj) -> int:
    replicas = workload["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def pod_name(workload: Obj, ordinal: int) -> str:
    return f"{workload['metadata']['name']}-{ordinal}"


def ordinal_of(workload: Obj, name: str) -> int | None:
    """Return the ordinal in a pod's name; None for what cannot be a pod of this set."""
    parent, dash, digits = name.rpartition("-")
    if not dash or parent != workload["metadata"]["name"] or not (digits.isascii() and digits.isdecimal()):
        return None
    ordinal = int(digits)
    return ordinal if str(ordinal) == digits else None


def identity_labels(name: str, ordinal: int, minor: int) -> dict[str, str]:
    """`minor` is the cluster's version: older ones know no index label."""
    labels = {POD_NAME_LABEL: name}
    return {**labels, POD_INDEX_LABEL: str(ordinal)} if minor >= _INDEX_SINCE else labels


def claim_templates(workload: Obj) -> list[Obj]:
    return workload["spec"].get("volumeClaimTemplates") or []


def claim_name(template: Obj, name: str) -> str:
    """Return the claim that a pod of this name has for this template."""
    return f"{template['metadata']['name']}-{name}"


def new_pod(workload: Obj, template: Obj, ordinal: int, revision: str, minor: int) -> Obj:
    """Return the pod with this ordinal, from the template of the revision named."""
    name = pod_name(workload, ordinal)
    pod = pod_from(template, workload, name=name)
    labels = pod["metadata"].get("labels") or {}
    pod["metadata"]["labels"] = {**labels, **identity_labels(name, ordinal, minor), REVISION_LABEL: revision}
    spec = pod["spec"]
    spec["hostname"] = name
    if workload["spec"].get("serviceName"):
        spec["subdomain"] = workload["spec"]["serviceName"]
    templates = claim_templates(workload)
    if templates:
        spec["volumes"] = with_claims(spec.get("volumes") or [], templates, name)
    return pod


def with_claims(volumes: list[Obj], templates: list[Obj], name: str) -> list[Obj]:
    """Return a pod's volumes: a claim takes the place of a volume of its template's name."""
    claimed = {template["metadata"]["name"] for template in templates}
    mounts = [
        {"name": t["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name(t, name)}} for t in templates
    ]
    return mounts + [volume for volume in volumes if volume["name"] not in claimed]


def new_claim(workload: Obj, template: Obj, name: str) -> Obj:
    """Return the claim of a pod of this name, before it has owners."""
    given = template["metadata"]
    metadata: Obj = {"name": claim_name(template, name), "namespace": workload["metadata"]["namespace"]}
    labels = {**(given.get("labels") or {}), **(workload["spec"]["selector"].get("matchLabels") or {})}
    if labels:
        metadata["labels"] = labels
    if given.get("annotations"):
        metadata["annotations"] = dict(given["annotations"])
    spec = copy_json(template.get("spec") or {})
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
