"""The pod of a DaemonSet for one node: with the node's affinity and the tolerations of daemon pods."""

from __future__ import annotations

from karmada.kube.objects.podstate import node_name
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.podcontrol import pod_from
from karmada.kube.sim.controllers.revisions import REVISION_LABEL

GENERATION_LABEL = "pod-template-generation"
GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NAME_FIELD = "metadata.name"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = (*_TOLERATED, ("network-unavailable", "NoSchedule"))


def tolerations(pod_spec: Obj) -> list[Obj]:
    """Return the template's own, and those that every daemon has."""
    own: list[Obj] = pod_spec.get("tolerations") or []
    added = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
        for key, effect in (_TOLERATED_ON_HOST_NETWORK if pod_spec.get("hostNetwork") else _TOLERATED)
    ]
    return own + [toleration for toleration in added if toleration not in own]


def pinned(affinity: Obj | None, node: str) -> Obj:
    """Return an affinity that requires this node and nothing else; what it merely prefers stays."""
    affinity = affinity or {}
    fields = [{"key": _NAME_FIELD, "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), _REQUIRED: required}}


def new_pod(workload: Obj, node: str, hash_: str) -> Obj:
    of = workload["metadata"]
    pod = pod_from(workload["spec"]["template"], workload, generate_name=f"{of['name']}-")
    labels = {**(pod["metadata"].get("labels") or {}), REVISION_LABEL: hash_}
    generation = (of.get("annotations") or {}).get(GENERATION_ANNOTATION)
    if generation:
        labels[GENERATION_LABEL] = generation
    pod["metadata"]["labels"] = labels
    spec = pod["spec"]
    spec["affinity"] = pinned(spec.get("affinity"), node)
    spec["tolerations"] = tolerations(spec)
    return pod


def target_node(pod: Obj) -> str:
    """Return the node a pod is on, or was made for; "" when it was not made for one."""
    if bound := node_name(pod):
        return bound
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == _NAME_FIELD and field["operator"] == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return ""
