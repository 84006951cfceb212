"""Counts the pods of a Job, and decides from the counts whether it continues.

Every pod carries a finalizer until its end is counted, so that none is lost or counted twice, even after a crash: the
uids of ended pods are added to status.uncountedTerminatedPods, then their finalizers are removed, then the uids are
replaced by the counters. Successful pods of an indexed Job need no list: their indexes are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from karmada.kube.objects.meta import has_condition, is_deleting
from karmada.kube.objects.podstate import is_active, is_ready, phase
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.job_indexes import index_of, parse_indexes
from karmada.kube.sim.controllers.job_rules import (
    Verdict,
    early_success,
    fails_index,
    failures_of,
    ignored_of,
    is_failed,
    is_terminating,
    is_tracked,
    reaction_to,
    restarted_too_often,
)

MAX_UNCOUNTED = 500
"""The number of ended pods that are recorded in one write."""
REACHED = "Reached expected number of succeeded pods"


@dataclass(slots=True)
class Tally:
    active: list[Obj] = field(default_factory=list)
    ready: int = 0
    terminating: list[Obj] = field(default_factory=list)
    uncounted_succeeded: list[str] = field(default_factory=list)
    uncounted_failed: list[str] = field(default_factory=list)
    completed: set[int] = field(default_factory=set)
    """Indexes that succeeded; empty for a Job without indexes."""
    failed_indexes: set[int] = field(default_factory=set)
    last_failed: dict[int, Obj] = field(default_factory=dict)
    """The pod whose place the next try of an index takes, where failures are limited per index."""
    ended: list[Obj] = field(default_factory=list)
    """Pods whose finalizer can be removed as soon as the status records their end."""
    held: list[Obj] = field(default_factory=list)
    """Ended pods that keep it while the Job goes on."""
    succeeded: int = 0
    failed: int = 0
    fail_message: str = ""
    """Why a pod failure policy ends the Job."""
    more: bool = False


def is_indexed(job: Obj) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def limits_per_index(job: Obj) -> bool:
    return is_indexed(job) and job["spec"].get("backoffLimitPerIndex") is not None


def tally(job: Obj, pods: Sequence[Obj]) -> Tally:
    spec, status = job["spec"], job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    found = Tally(
        uncounted_succeeded=list(uncounted.get("succeeded") or ()),
        uncounted_failed=list(uncounted.get("failed") or ()),
    )
    if is_indexed(job):
        found.completed = parse_indexes(status.get("completedIndexes"), spec.get("completions") or 0)
        found.failed_indexes = parse_indexes(status.get("failedIndexes"), spec.get("completions") or 0)
    for pod in pods:
        if is_active(pod):
            found.active.append(pod)
            found.ready += is_ready(pod)
        elif is_terminating(pod):
            found.terminating.append(pod)
    found.failed = status.get("failed", 0) + len(found.uncounted_failed)
    found.succeeded = status.get("succeeded", 0) + len(found.uncounted_succeeded)
    tracked = [pod for pod in pods if is_tracked(pod)]
    for pod in tracked:
        _take_end(found, job, pod)
    if limits_per_index(job):
        _hold_last_failures(found, job, tracked)
    if is_indexed(job):
        found.succeeded = len(found.completed)
    return found


def _take_end(found: Tally, job: Obj, pod: Obj) -> None:
    """Record a pod if it has ended. Those beyond the limit are counted, but recorded by the next reconcile."""
    uid = pod["metadata"]["uid"]
    if phase(pod) == "Succeeded":
        index = _valid_index(job, pod)
        if index is not None:
            found.completed.add(index)
        elif not is_indexed(job) and uid not in found.uncounted_failed and uid not in found.uncounted_succeeded:
            found.succeeded += 1
            _note(found, found.uncounted_succeeded, uid)
        _end(found, pod)
    elif is_failed(pod, job) or (is_deleting(pod) and is_giving_up(job)):
        _take_failure(found, job, pod, uid)
        _end(found, pod)
    elif is_deleting(pod) and is_deleting(job):
        _end(found, pod)


def _note(found: Tally, uids: list[str], uid: str) -> None:
    if len(found.ended) < MAX_UNCOUNTED:
        uids.append(uid)


def _end(found: Tally, pod: Obj) -> None:
    if len(found.ended) < MAX_UNCOUNTED:
        found.ended.append(pod)
    else:
        found.more = True


def _take_failure(found: Tally, job: Obj, pod: Obj, uid: str) -> None:
    index = _valid_index(job, pod)
    if is_indexed(job) and index is None:
        return
    reaction = reaction_to(job, pod)
    if reaction.action == "FailJob" and not found.fail_message:
        found.fail_message = reaction.message
    if reaction.action != "Ignore" and uid not in found.uncounted_failed:
        found.failed += 1
        _note(found, found.uncounted_failed, uid)
    if index is not None and limits_per_index(job) and fails_index(job, pod) and index not in found.completed:
        found.failed_indexes.add(index)


def _hold_last_failures(found: Tally, job: Obj, pods: Sequence[Obj]) -> None:
    """Keep the last failed pod of an index until its replacement exists: its annotation has the failure count."""
    newest: dict[int, Obj] = {}
    for pod in pods:
        index = _valid_index(job, pod)
        if index is not None and (index not in newest or _tries(pod) > _tries(newest[index])):
            newest[index] = pod
    for index, pod in newest.items():
        if index not in found.completed and index not in found.failed_indexes and is_failed(pod, job):
            found.last_failed[index] = pod
            found.held.append(pod)
    held = {pod["metadata"]["uid"] for pod in found.held}
    found.ended = [pod for pod in found.ended if pod["metadata"]["uid"] not in held]


def _tries(pod: Obj) -> int:
    return failures_of(pod) + ignored_of(pod)


def _valid_index(job: Obj, pod: Obj) -> int | None:
    index = index_of(pod) if is_indexed(job) else None
    return index if index is not None and index < (job["spec"].get("completions") or 0) else None


# --- decisions


def is_giving_up(job: Obj) -> bool:
    """Return whether the Job has FailureTarget: it fails once its pods are gone."""
    return has_condition((job.get("status") or {}).get("conditions"), "FailureTarget")


def end_of(job: Obj) -> str:
    """Return Complete or Failed; "" while it continues."""
    conditions = (job.get("status") or {}).get("conditions")
    return next((kind for kind in ("Complete", "Failed") if has_condition(conditions, kind)), "")


def verdict(job: Obj, found: Tally, now: float) -> Verdict | None:
    """Return how the Job ends; None while it continues. A decision is final."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in ("FailureTarget", "SuccessCriteriaMet") and condition["status"] == "True":
            succeeded = condition["type"] == "SuccessCriteriaMet"
            return Verdict(succeeded, condition.get("reason", ""), condition.get("message", ""))
    return _failure(job, found, now) or _index_failure(job, found) or _success(job, found)


def _failure(job: Obj, found: Tally, now: float) -> Verdict | None:
    if found.fail_message:
        return Verdict(False, "PodFailurePolicy", found.fail_message)
    if found.failed > job["spec"].get("backoffLimit", 6) or restarted_too_often(job, found.active):
        return Verdict(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    ends = deadline(job)
    if ends is not None and now >= ends:
        return Verdict(False, "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def deadline(job: Obj) -> float | None:
    """When a running Job has been active for too long."""
    seconds, started = job["spec"].get("activeDeadlineSeconds"), (job.get("status") or {}).get("startTime")
    if seconds is None or not started or job["spec"].get("suspend"):
        return None
    return parse_time(started) + float(seconds)


def _index_failure(job: Obj, found: Tally) -> Verdict | None:
    if not limits_per_index(job) or not found.failed_indexes:
        return None
    most = job["spec"].get("maxFailedIndexes")
    if most is not None and len(found.failed_indexes) > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Verdict(False, "MaxFailedIndexesExceeded", message)
    if len(found.failed_indexes) + len(found.completed) >= (job["spec"].get("completions") or 0):
        return Verdict(False, "FailedIndexes", "Job has failed indexes")
    return None


def _success(job: Obj, found: Tally) -> Verdict | None:
    if is_indexed(job):
        early = early_success(job, found.completed)
        if early is not None:
            return early
    completions = job["spec"].get("completions")
    reached = found.succeeded > 0 if completions is None else found.succeeded >= completions
    if reached and not found.active:
        return Verdict(True, "CompletionsReached", REACHED)
    return None


def wanted_active(job: Obj, found: Tally) -> int:
    """Return how many pods should run at once.

    Without a number of completions the first success ends the making of pods.
    """
    parallelism, completions = int(job["spec"].get("parallelism", 1)), job["spec"].get("completions")
    if completions is None:
        return len(found.active) if found.succeeded else parallelism
    return max(0, min(parallelism, int(completions) - found.succeeded))
