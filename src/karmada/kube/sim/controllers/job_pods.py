"""The pods that a Job creates, and those that it deletes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karmada.kube.objects.meta import creation_time
from karmada.kube.objects.podstate import is_ready, node_name, phase
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.job_indexes import INDEX, index_of
from karmada.kube.sim.controllers.job_rules import FAILURES, TRACKING, counts_after, index_try, replaces_failed_only
from karmada.kube.sim.controllers.job_tally import Tally, is_indexed, limits_per_index
from karmada.kube.sim.controllers.podcontrol import pod_from

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def make_pod(job: Obj, index: int | None, *, failed: Obj | None = None, label: bool = True) -> Obj:
    """`failed`: the pod of the same index that this one takes the place of. `label`: the index is a label, too."""
    name = job["metadata"]["name"]
    prefix = f"{name}-" if index is None else f"{name}-{index}-"
    pod = pod_from(job["spec"]["template"], job, generate_name=prefix)
    meta = pod["metadata"]
    meta["finalizers"] = [*meta.get("finalizers", ()), TRACKING]
    if index is None:
        return pod
    meta.setdefault("annotations", {})[INDEX] = str(index)
    if label:
        meta.setdefault("labels", {})[INDEX] = str(index)
    if limits_per_index(job):
        meta["annotations"] |= counts_after(job, failed) if failed is not None else {FAILURES: "0"}
    pod["spec"]["hostname"] = f"{name}-{index}"
    _expose_index(pod["spec"], label)
    return pod


def _expose_index(spec: Obj, label: bool) -> None:
    """Give every container its index in the environment."""
    source = f"metadata.{'labels' if label else 'annotations'}['{INDEX}']"
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": source}}}
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        environment = container.setdefault("env", [])
        if all(entry["name"] != variable["name"] for entry in environment):
            environment.append(variable)


def free_indexes(job: Obj, found: Tally) -> Iterator[int]:
    """Indexes without a pod that are not done, lowest first."""
    busy = {index_of(pod) for pod in found.active} | found.completed | found.failed_indexes
    if replaces_failed_only(job):
        busy |= {index_of(pod) for pod in found.terminating}
    return (index for index in range(job["spec"].get("completions") or 0) if index not in busy)


def startable_indexes(job: Obj, found: Tally, most: int, now: float) -> tuple[list[int], float | None]:
    """At most `most` indexes to start now, and when the first of those in back-off may be retried."""
    start: list[int] = []
    later: float | None = None
    for index in free_indexes(job, found):
        if len(start) >= most:
            break
        failed = found.last_failed.get(index)
        at = index_try(failed) if failed is not None else 0.0
        if at <= now:
            start.append(index)
        else:
            later = at if later is None else min(later, at)
    return start, later


def superfluous(job: Obj, active: Sequence[Obj], wanted: int) -> list[Obj]:
    """Pods to remove: those whose index is taken or gone, then the least advanced."""
    if not is_indexed(job):
        return sorted(active, key=_progress)[: max(0, len(active) - wanted)]
    completions = job["spec"].get("completions") or 0
    kept: dict[int, Obj] = {}
    extra: list[Obj] = []
    for pod in sorted(active, key=_progress, reverse=True):
        index = index_of(pod)
        if index is None or index >= completions or index in kept:
            extra.append(pod)
        else:
            kept[index] = pod
    return [*extra, *sorted(kept.values(), key=_progress)[: max(0, len(kept) - wanted)]]


def _progress(pod: Obj) -> tuple[object, ...]:
    """Greater means further: on a node, running, ready, and older."""
    age = tuple(-ord(character) for character in creation_time(pod))
    return bool(node_name(pod)), _PHASES.get(phase(pod), 2), is_ready(pod), age, pod["metadata"]["name"]
