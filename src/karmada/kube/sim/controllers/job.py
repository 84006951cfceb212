"""Jobs: pods that run to completion, a given number of times.

A reconcile counts the pods (job_tally), decides whether the Job continues (verdict), creates or deletes pods, and
writes the status in the order that keeps the counts exact: record the uids, remove the finalizers, raise the counters.
SuccessCriteriaMet or FailureTarget are set first, Complete or Failed when no pod is running any more. The tracking
finalizer is removed from pods whose Job is deleted or finished.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from karmada.kube.kinds.batch import JOB_NAME
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvrs import JOBS, PODS
from karmada.kube.objects.meta import controller_of, creation_time, get_condition, is_deleting, labels
from karmada.kube.objects.podstate import is_ready, phase, restarts
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import remove_finalizer
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.job_pods import make_pod, startable_indexes, superfluous
from karmada.kube.sim.controllers.job_rules import TRACKING, Verdict, is_tracked, next_try, replaces_failed_only
from karmada.kube.sim.controllers.job_status import (
    count_ends,
    declare_end,
    must_be_stored_first,
    note_ends,
    uncounted_uids,
)
from karmada.kube.sim.controllers.job_tally import (
    Tally,
    deadline,
    end_of,
    is_indexed,
    limits_per_index,
    tally,
    verdict,
    wanted_active,
)
from karmada.kube.sim.controllers.orphans import CLAIM_INDEXES, candidates, until_each, until_ending, workload_keys
from karmada.kube.sim.controllers.podcontrol import BURST, PodControl, is_namespace_ending, selector_of, slow_start
from karmada.kube.sim.controllers.resting import Resting

OWN_MANAGER = "kubernetes.io/job-controller"
_BY_JOB = "tracked for job"


def index_by_tracking_job(pod: Obj) -> Iterable[str]:
    """Pods whose end some Job must count, by that Job's name, even when they have lost their owner."""
    if not is_tracked(pod):
        return ()
    owner = controller_of(pod)
    name = owner["name"] if owner is not None else labels(pod).get(JOB_NAME)
    return (f"{pod['metadata']['namespace']}/{name}",) if name else ()


@dataclass(slots=True)
class _Work:
    """One reconcile of a Job: what was found and what was done."""

    job: Obj
    pods: list[Obj]
    found: Tally
    now: float
    end: Verdict | None
    made: int = 0
    removed: list[Obj] = field(default_factory=list)
    error: ApiError | None = None
    again: list[float] = field(default_factory=list)
    """Times of the next reconciles."""


class Jobs(Reconciler):
    name = "job-controller"
    workers = 5

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client()
        self._clock = context.clock
        self._recorder = context.recorder(self.name)
        self._control = PodControl(context, self.name)
        self._jobs: Informer = context.informers.of(JOBS)
        self._pods: Informer = context.informers.of(PODS, indexes={**CLAIM_INDEXES, _BY_JOB: index_by_tracking_job})
        self._owners_of = workload_keys("Job", self._jobs)
        self._resting = Resting(context.clock)
        self._label_index = context.profile.minor >= 28
        self.watches = (
            Watch(JOBS, changed=SPEC_OR_DELETION),
            Watch(PODS, when=self._is_relevant, map_to=self._jobs_of),
        )

    # from pods to Jobs

    def _jobs_of(self, pod: Obj) -> Iterable[Key]:
        """Return a pod's owner, those that may adopt it, and the one its finalizer waits for, even if that is gone."""
        keys = list(self._owners_of(pod))
        if controller_of(pod) is None and is_tracked(pod) and labels(pod).get(JOB_NAME):
            keys.append(Key(pod["metadata"]["namespace"], labels(pod)[JOB_NAME]))
        return keys

    def _is_relevant(self, old: Obj | None, new: Obj | None) -> bool:
        if old is None or new is None:
            return True
        return bool(self._jobs_of(new) or self._jobs_of(old)) and _seen_by_jobs(old) != _seen_by_jobs(new)

    # reconcile

    async def reconcile(self, key: Key) -> Result:
        job = self._jobs.get(key)
        if job is not None and job["spec"].get("managedBy", OWN_MANAGER) != OWN_MANAGER:
            return Done
        await self._untrack_orphans(key, job)
        if job is None or end_of(job):
            self._resting.forget(key)
            return Done
        rest = self._resting.left(job)
        if rest:
            return requeue(rest)
        pods = await self._claim(job)
        now = self._clock.now()
        found = tally(job, pods)
        work = _Work(job, pods, found, now, verdict(job, found, now))
        if work.end is not None:
            await self._remove(work, found.active, counted=True)
        elif not is_deleting(job):
            await self._manage(work)
        await self._account(work)
        self._resting.counted(job, len(pods))
        return self._requeue(work)

    async def _untrack_orphans(self, key: Key, job: Obj | None) -> None:
        """Remove the finalizer of pods whose Job is finished, deleted or another one."""
        tracked = self._pods.by_index(_BY_JOB, f"{key.namespace}/{key.name}")
        await self._untrack([pod for pod in tracked if not self._counts(job, pod)])

    def _counts(self, job: Obj | None, pod: Obj) -> bool:
        """Return whether the Job counts the pod's end and removes its finalizer."""
        if job is None or end_of(job):
            return False
        owner = controller_of(pod)
        if owner is not None:
            return bool(owner["uid"] == job["metadata"]["uid"])
        return not is_deleting(job) and selector_of(job).matches(labels(pod))

    async def _claim(self, job: Obj) -> list[Obj]:
        found = candidates(self._pods, job)
        claimed = await self._control.claim(PODS, job, selector_of(job), found, finalizer=TRACKING)
        known = {id(pod) for pod in found}
        await self._context.until_seen(self._pods, [pod for pod in claimed if id(pod) not in known])
        claimed.sort(key=lambda pod: (creation_time(pod), pod["metadata"]["name"]))
        return claimed

    # making and removing pods

    async def _manage(self, work: _Work) -> None:
        job, found = work.job, work.found
        if job["spec"].get("suspend"):
            await self._remove(work, found.active, counted=False)
            return
        wanted = wanted_active(job, found)
        extra = superfluous(job, found.active, wanted)[:BURST]
        if extra:
            await self._remove(work, extra, counted=False)
            return
        missing = wanted - len(found.active)
        if replaces_failed_only(job):
            missing -= len(found.terminating)
        if missing > 0:
            await self._make(work, min(missing, BURST))

    async def _make(self, work: _Work, missing: int) -> None:
        job, found = work.job, work.found
        if not limits_per_index(job):
            at = next_try(work.pods, job)
            if at > work.now:
                work.again.append(at)
                return
        if is_indexed(job):
            start, later = startable_indexes(job, found, missing, work.now)
            work.again += [later] if later is not None else []
            label = self._label_index
            pods = [make_pod(job, index, failed=found.last_failed.get(index), label=label) for index in start]
        else:
            pods = [make_pod(job, None) for _ in range(missing)]
        waiting = iter(pods)
        made, work.error = await slow_start(len(pods), lambda: self._control.create(job, next(waiting)))
        work.made = len(made)
        await self._context.until_seen(self._pods, made)

    async def _remove(self, work: _Work, pods: list[Obj], *, counted: bool) -> None:
        """Delete pods; `counted`: their end counts as a failure of the Job."""
        if not pods:
            return
        if not counted:
            await self._untrack(pods)
        await asyncio.gather(*(self._control.delete(work.job, pod) for pod in pods))
        await until_ending(self._context, self._pods, pods)
        work.removed = pods

    async def _untrack(self, pods: list[Obj]) -> None:
        """Remove the tracking finalizer, so that nothing holds the pod after its deletion."""
        if not pods:
            return
        await asyncio.gather(*(self._untrack_one(pod) for pod in pods))
        await until_each(self._context, self._pods, pods, lambda pod: not is_tracked(pod))

    async def _untrack_one(self, pod: Obj) -> None:
        """Take the finalizer off a pod by a JSON patch that tests only it: kubelets change the version too often."""
        meta = pod["metadata"]
        finalizers = meta.get("finalizers") or []
        if TRACKING not in finalizers:
            return
        place = f"/metadata/finalizers/{finalizers.index(TRACKING)}"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
            {"op": "test", "path": place, "value": TRACKING},
            {"op": "remove", "path": place},
        ]
        try:
            await self._client.patch(PODS, meta["name"], meta["namespace"], patch, type="json")
        except NotFound:
            return
        except ApiError:
            # the pod is another one by now, or its finalizers have moved
            fresh = await self._client.get(PODS, meta["name"], meta["namespace"])
            if fresh["metadata"]["uid"] == meta["uid"]:
                await remove_finalizer(self._client, PODS, fresh, TRACKING)

    # the status

    async def _account(self, work: _Work) -> None:
        found = work.found
        noted = note_ends(work.job, found, work.end, made=work.made, removed=work.removed, now=work.now)
        job = work.job
        if must_be_stored_first(job.get("status") or {}, noted):
            job = await self._context.put_status(JOBS, job, noted)
        over = work.end is not None or is_deleting(work.job)
        ended = [*found.ended, *found.held] if over else found.ended
        await self._untrack(ended)
        gone = {pod["metadata"]["uid"] for pod in ended}
        gone |= uncounted_uids(noted) - {pod["metadata"]["uid"] for pod in work.pods if is_tracked(pod)}
        status = count_ends(noted, gone, indexed=is_indexed(work.job))
        running = len(found.active) + len(found.terminating)
        if work.end is not None and not running and not found.more and not uncounted_uids(status):
            status = declare_end(status, work.end, work.now)
        await self._context.put_status(JOBS, job, status)
        self._emit(work.job, status)

    def _emit(self, job: Obj, status: Obj) -> None:
        was = get_condition((job.get("status") or {}).get("conditions"), "Suspended") or {}
        suspended = get_condition(status.get("conditions"), "Suspended") or {}
        if suspended and suspended.get("status") != was.get("status"):
            reason = "Suspended" if suspended["status"] == "True" else "Resumed"
            self._recorder.event(job, NORMAL, reason, suspended["message"])
        if get_condition(status.get("conditions"), "Complete"):
            self._recorder.event(job, NORMAL, "Completed", "Job completed")
        failed = get_condition(status.get("conditions"), "Failed")
        if failed:
            self._recorder.event(job, WARNING, failed["reason"], failed["message"])

    def _requeue(self, work: _Work) -> Result:
        if work.error is not None and not is_namespace_ending(work.error):
            raise work.error
        if work.found.more:
            return requeue(0)
        ends = deadline(self._jobs.get(key_of(work.job)) or work.job)
        moments = [*work.again, *([ends] if ends is not None else [])]
        return requeue(max(0.0, min(moments) - self._clock.now())) if moments and work.end is None else Done


def _seen_by_jobs(pod: Obj) -> tuple[object, ...]:
    meta = pod["metadata"]
    return (
        phase(pod), is_ready(pod), is_deleting(pod), restarts(pod), meta.get("finalizers"), meta.get("labels"),
        meta.get("ownerReferences"),
    )  # fmt: skip
