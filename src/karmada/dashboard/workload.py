"""One propagated resource with all that belongs to it: template, policy, binding, Works, and what members report.

Everything is read by name, not searched for: the names of the binding and of its Works follow from the template's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from karmada.api import well_known
from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.dashboard import reads
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.client.discovery import Mapping

CORE: Final = "core"
"""In paths: the API group without a name."""
NOWHERE: Final = "-"
"""In paths: no namespace."""
MOST_CLUSTERS: Final = 200
"""How many Works are read for one page; of further clusters the page shows what the binding has."""


class Ref(NamedTuple):
    """The resource that a path names."""

    gvr: GVR
    kind: str
    api_version: str
    namespace: str
    name: str

    @property
    def url(self) -> str:
        return url_of(self.gvr, self.namespace, self.name)


def url_of(gvr: GVR, namespace: str, name: str) -> str:
    return f"/workloads/{gvr.group or CORE}/{gvr.version}/{gvr.resource}/{namespace or NOWHERE}/{name}"


def ref_of(mapping: Mapping, namespace: str, name: str) -> Ref:
    return Ref(mapping.gvr, mapping.gvk.kind, mapping.gvk.api_version, "" if namespace == NOWHERE else namespace, name)


class PolicyRef(NamedTuple):
    kind: str
    namespace: str
    name: str

    @property
    def url(self) -> str:
        return f"/policies/{self.namespace or NOWHERE}/{self.name}"

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Target:
    """The resource in one cluster."""

    cluster: str
    replicas: int | None
    """That the scheduler gave it; None where replicas are not divided."""
    state: str
    """good, warn, bad or idle: a class of the style sheet."""
    text: str
    """The state in a few words."""
    work: Obj | None = None
    report: Obj | None = None
    """The cluster's entry in the binding's status."""

    @property
    def ready(self) -> int | None:
        status = (self.report or {}).get("status") or {}
        return status.get("readyReplicas", 0) if "replicas" in status or "readyReplicas" in status else None


@dataclass(frozen=True, slots=True)
class Workload:
    ref: Ref
    template: Obj | None
    binding: Obj | None
    policy: PolicyRef | None
    targets: Sequence[Target]
    works_hidden: bool = False
    """True if the viewer may not read Works."""

    @property
    def replicas(self) -> int | None:
        found = ((self.binding or {}).get("spec") or {}).get("replicas")
        return int(found) if found is not None else None

    @property
    def ready(self) -> int | None:
        known = [target.ready for target in self.targets if target.ready is not None]
        return sum(known) if known else None

    @property
    def condition(self) -> Obj | None:
        """Return the condition of scheduling."""
        return meta.get_condition(((self.binding or {}).get("status") or {}).get("conditions"), "Scheduled")


async def read(client: Client, ref: Ref) -> Workload:
    """Read a workload; NotFound when there is neither template nor binding."""
    template, binding = await asyncio.gather(
        reads.existing(reads.allowed(client.get(ref.gvr, ref.name, ref.namespace))),
        reads.existing(reads.allowed(client.get(binding_kind(ref), binding_name(ref), ref.namespace))),
    )
    if template is None and binding is None:
        await client.get(ref.gvr, ref.name, ref.namespace)  # as the server puts it
    names = _clusters_of(binding)
    found = await reads.allowed(_works(client, ref, names[:MOST_CLUSTERS]))
    targets = targets_of(binding, found or {})
    return Workload(ref, template, binding, policy_of(binding or template), targets, found is None)


def binding_kind(ref: Ref) -> GVR:
    return ResourceBinding.gvr if ref.namespace else ClusterResourceBinding.gvr


def binding_name(ref: Ref) -> str:
    return well_known.binding_name(ref.kind, ref.name)


def work_name(ref: Ref) -> str:
    return well_known.work_name(ref.kind, ref.name, ref.namespace)


async def _works(client: Client, ref: Ref, clusters: Iterable[str]) -> dict[str, Obj]:
    """Return the Works by cluster; Forbidden if the viewer may not read one."""
    names = list(clusters)
    gets = (
        reads.existing(client.get(Work.gvr, work_name(ref), well_known.execution_namespace(cluster)))
        for cluster in names
    )
    found = await asyncio.gather(*gets)
    return {name: work for name, work in zip(names, found, strict=True) if work is not None}


def policy_of(obj: Obj | None) -> PolicyRef | None:
    """Return the policy that has claimed a template or a binding."""
    annotations = meta.annotations(obj) if obj is not None else {}
    if annotations.get(well_known.POLICY_NAME):
        namespace = str(annotations.get(well_known.POLICY_NAMESPACE) or "")
        return PolicyRef(PropagationPolicy.gvk.kind, namespace, str(annotations[well_known.POLICY_NAME]))
    if annotations.get(well_known.CLUSTER_POLICY_NAME):
        return PolicyRef(ClusterPropagationPolicy.gvk.kind, "", str(annotations[well_known.CLUSTER_POLICY_NAME]))
    return None


# what the binding says of clusters


def _clusters_of(binding: Obj | None) -> list[str]:
    """Return the names of the clusters that a binding is in or leaves."""
    spec, status = (binding or {}).get("spec") or {}, (binding or {}).get("status") or {}
    names = {one["name"] for one in spec.get("clusters") or ()}
    names |= {one["fromCluster"] for one in spec.get("gracefulEvictionTasks") or ()}
    names |= {one["clusterName"] for one in status.get("aggregatedStatus") or ()}
    return sorted(names)


def targets_of(binding: Obj | None, works: dict[str, Obj]) -> list[Target]:
    spec, status = (binding or {}).get("spec") or {}, (binding or {}).get("status") or {}
    wanted = {one["name"]: one.get("replicas") for one in spec.get("clusters") or ()}
    leaving = {one["fromCluster"]: one for one in spec.get("gracefulEvictionTasks") or ()}
    reports = {one["clusterName"]: one for one in status.get("aggregatedStatus") or ()}
    return [
        _target(name, wanted, leaving.get(name), reports.get(name), works.get(name)) for name in _clusters_of(binding)
    ]


def _target(name: str, wanted: dict[str, int | None], task: Obj | None, report: Obj | None, work: Obj | None) -> Target:
    state, text = _state(name in wanted, task, report, work)
    return Target(name, wanted.get(name), state, text, work, report)


def _state(wanted: bool, task: Obj | None, report: Obj | None, work: Obj | None) -> tuple[str, str]:
    if task is not None:
        return "idle", f"Leaving: {task.get('reason') or 'evicted'}"
    if not wanted:
        return "idle", "Being removed"
    message = (report or {}).get("appliedMessage") or _not_applied(work)
    if message:
        return "bad", message
    if report is None or not report.get("applied"):
        return "warn", "Waiting to be applied"
    health = report.get("health") or "Unknown"
    return {"Healthy": ("good", "Healthy"), "Unhealthy": ("bad", "Unhealthy")}.get(health, ("warn", "Health not known"))


def _not_applied(work: Obj | None) -> str:
    found = meta.get_condition(((work or {}).get("status") or {}).get("conditions"), "Applied")
    return str(found.get("message") or found.get("reason") or "") if found and found.get("status") == "False" else ""
