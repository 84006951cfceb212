"""The rules of a Job about single pods: pod failure policy, success policy, back-off.

All are functions of plain values. A pod counts as failed once its phase says so, or, where replacements need not wait
for the end (podReplacementPolicy TerminatingOrFailed), as soon as it is being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from karmada.kube.objects import meta
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import phase, restarts
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.sim.controllers.job_indexes import parse_indexes

TRACKING = "batch.kubernetes.io/job-tracking"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 600.0


class Reaction(NamedTuple):
    """The action of a pod failure policy on a failed pod: Count, Ignore, FailJob or FailIndex, and why."""

    action: str
    message: str = ""


class Verdict(NamedTuple):
    """How a Job ends."""

    succeeded: bool
    reason: str
    message: str


def is_tracked(pod: Obj) -> bool:
    """Return whether a pod's end is not yet in the Job's status for good."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def replaces_failed_only(job: Obj) -> bool:
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def is_failed(pod: Obj, job: Obj) -> bool:
    now = phase(pod)
    return now == "Failed" or (is_deleting(pod) and now != "Succeeded" and not replaces_failed_only(job))


def is_terminating(pod: Obj) -> bool:
    return is_deleting(pod) and phase(pod) not in ("Succeeded", "Failed")


# --- pod failure policy


def reaction_to(job: Obj, pod: Obj) -> Reaction:
    """Return the first rule that matches a failed pod; without any the failure counts."""
    policy = job["spec"].get("podFailurePolicy")
    if not policy or phase(pod) != "Failed":
        return Reaction("Count")
    for number, rule in enumerate(policy.get("rules") or ()):
        why = _why_matching(rule, pod)
        if why:
            return Reaction(rule["action"], f"{why} matching {rule['action']} rule at index {number}")
    return Reaction("Count")


def _why_matching(rule: Obj, pod: Obj) -> str:
    where = f"{meta.namespace(pod)}/{meta.name(pod)}"
    codes = rule.get("onExitCodes")
    if codes:
        for name, code in _exit_codes(pod):
            if code and codes.get("containerName") in (None, name) and _matches_code(codes, code):
                return f"Container {name} for pod {where} failed with exit code {code}"
    conditions = (pod.get("status") or {}).get("conditions") or ()
    for pattern in rule.get("onPodConditions") or ():
        for condition in conditions:
            if (condition["type"], condition["status"]) == (pattern["type"], pattern.get("status") or "True"):
                return f"Pod {where} has condition {condition['type']}"
    return ""


def _exit_codes(pod: Obj) -> Iterator[tuple[str, int]]:
    status = pod.get("status") or {}
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        terminated = (container.get("state") or {}).get("terminated")
        if terminated:
            yield container["name"], int(terminated.get("exitCode") or 0)


def _matches_code(codes: Obj, code: int) -> bool:
    return (code in (codes.get("values") or ())) is (codes.get("operator") == "In")


# --- success policy


def early_success(job: Obj, completed: set[int]) -> Verdict | None:
    """Return the success policy: an indexed Job may succeed before all indexes have."""
    completions = job["spec"].get("completions") or 0
    for number, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules") or ()):
        wanted = completed
        needed = rule.get("succeededCount")
        if rule.get("succeededIndexes") is not None:
            listed = parse_indexes(rule["succeededIndexes"], completions)
            wanted = listed & completed
            needed = len(listed) if needed is None else needed
        if needed is not None and len(wanted) >= needed:
            return Verdict(True, "SuccessPolicy", f"Matched rules at index {number}")
    return None


# --- back-off


def pause_after(failures: int) -> float:
    """Doubling with every failure in a row."""
    return BackOff(FIRST_PAUSE, LONGEST_PAUSE).pause(failures - 1) if failures > 0 else 0.0


def finished_at(pod: Obj) -> float:
    """When a pod ended, as precisely as its status says."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    ends = [
        terminated["finishedAt"]
        for container in status.get("containerStatuses") or ()
        if (terminated := (container.get("state") or {}).get("terminated")) and terminated.get("finishedAt")
    ]
    if ends:
        return max(map(parse_time, ends))
    if metadata.get("deletionTimestamp"):
        return parse_time(metadata["deletionTimestamp"]) - float(metadata.get("deletionGracePeriodSeconds") or 0)
    changes = [c["lastTransitionTime"] for c in status.get("conditions") or () if c.get("lastTransitionTime")]
    return max(map(parse_time, changes), default=parse_time(metadata["creationTimestamp"]))


def next_try(pods: Iterable[Obj], job: Obj) -> float:
    """When a replacement may be made: after a pause that grows with the failures since the last success."""
    failures, successes = [], [0.0]
    for pod in pods:
        if phase(pod) == "Succeeded":
            successes.append(finished_at(pod))
        elif phase(pod) == "Failed" or (is_tracked(pod) and is_failed(pod, job)):
            failures.append(finished_at(pod))
    last = max(successes)
    in_a_row = [moment for moment in failures if moment > last or last == 0.0]
    return max(in_a_row) + pause_after(len(in_a_row)) if in_a_row else 0.0


def restarted_too_often(job: Obj, pods: Iterable[Obj]) -> bool:
    """With restartPolicy OnFailure it is containers that are tried again, within the same limit."""
    if (job["spec"]["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    limit = int(job["spec"].get("backoffLimit", 6))
    total = sum(_restarts(pod) for pod in pods if phase(pod) in ("Running", "Pending"))
    return total >= limit if limit else total > 0


def _restarts(pod: Obj) -> int:
    first = (pod.get("status") or {}).get("initContainerStatuses") or ()
    return restarts(pod) + sum(int(container.get("restartCount", 0)) for container in first)


# --- failures of one index


def failures_of(pod: Obj) -> int:
    """Return how often the pod's index had failed before it."""
    return _number(meta.annotations(pod).get(FAILURES))


def ignored_of(pod: Obj) -> int:
    return _number(meta.annotations(pod).get(IGNORED))


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def fails_index(job: Obj, pod: Obj) -> bool:
    """After this failed pod its index is not tried again."""
    reaction = reaction_to(job, pod)
    if reaction.action == "FailIndex":
        return True
    if reaction.action == "Ignore":
        return False
    return failures_of(pod) + 1 > int(job["spec"]["backoffLimitPerIndex"])


def counts_after(job: Obj, failed: Obj) -> dict[str, str]:
    """Return the annotations of the pod that takes a failed one's place."""
    ignored = reaction_to(job, failed).action == "Ignore"
    found = {FAILURES: str(failures_of(failed) + (not ignored))}
    ignored_before = ignored_of(failed) + ignored
    return {**found, IGNORED: str(ignored_before)} if ignored_before else found


def index_try(failed: Obj) -> float:
    """When the index of a failed pod may be tried again."""
    return finished_at(failed) + pause_after(failures_of(failed) + ignored_of(failed) + 1)
