"""CronJobs: a Job at every time of a schedule.

A reconcile updates the list of active Jobs, then creates the Job of the latest missed time, unless the starting
deadline or the concurrency policy prevents it, deletes Jobs beyond the history limits, and requeues for the next time.
A Job's name is made from its scheduled time, so that a time never gets two Jobs, even after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfoNotFoundError

from karmada.kube.kinds.cron import MANY, missed, upcoming, zone_of
from karmada.kube.kinds.schedule import Schedule, parse_schedule
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import AlreadyExists, ApiError
from karmada.kube.objects.gvrs import CRONJOBS, JOBS
from karmada.kube.objects.meta import controller_of, creation_time, is_deleting, make_owner
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.job_tally import end_of
from karmada.kube.sim.controllers.podcontrol import BY_CONTROLLER, index_by_controller, is_namespace_ending, owner_key

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


@dataclass(slots=True)
class _Look:
    """A CronJob, its Jobs, and the status it should have."""

    cronjob: Obj
    jobs: list[Obj]
    now: float
    status: Obj
    made: list[Obj] = field(default_factory=list)

    @property
    def spec(self) -> Obj:
        spec: Obj = self.cronjob["spec"]
        return spec

    @property
    def active(self) -> list[Obj]:
        return list(self.status.get("active") or ())

    @active.setter
    def active(self, references: list[Obj]) -> None:
        if references:
            self.status["active"] = references
        else:
            self.status.pop("active", None)

    def last_time(self) -> float:
        """Return the time after which schedule times count as missed."""
        return parse_time(self.status.get("lastScheduleTime") or creation_time(self.cronjob))

    def since(self) -> float:
        """Earliest time that still counts, limited by startingDeadlineSeconds."""
        grace = self.spec.get("startingDeadlineSeconds")
        return self.last_time() if grace is None else max(self.last_time(), self.now - grace)


class CronJobs(Reconciler):
    name = "cronjob-controller"
    workers = 5

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client()
        self._clock = context.clock
        self._recorder = context.recorder(self.name)
        self._cronjobs: Informer = context.informers.of(CRONJOBS)
        self._jobs: Informer = context.informers.of(JOBS, indexes={BY_CONTROLLER: index_by_controller})
        self.watches = (
            Watch(CRONJOBS, changed=SPEC_OR_DELETION),
            Watch(JOBS, map_to=owner_key("CronJob")),
        )

    async def reconcile(self, key: Key) -> Result:
        cronjob = self._cronjobs.get(key)
        if cronjob is None:
            return Done
        jobs = self._jobs.by_index(BY_CONTROLLER, cronjob["metadata"]["uid"])
        look = _Look(cronjob, jobs, self._clock.now(), dict(cronjob.get("status") or {}))
        self._follow(look)
        after = Done
        if not is_deleting(cronjob):
            after = await self._schedule(look)
            await self._prune(look)
        await self._write(look)
        return after

    async def _write(self, look: _Look) -> None:
        await self._context.until_seen(self._jobs, look.made)
        await self._context.put_status(CRONJOBS, look.cronjob, look.status)

    # active Jobs

    def _follow(self, look: _Look) -> None:
        listed = {reference["uid"] for reference in look.active}
        for job in look.jobs:
            name, uid = job["metadata"]["name"], job["metadata"]["uid"]
            ended = end_of(job)
            if uid in listed and ended:
                look.active = [reference for reference in look.active if reference["uid"] != uid]
                self._emit(look, NORMAL, "SawCompletedJob", f"Saw completed job: {name}, condition: {ended}")
            elif uid not in listed and not ended:
                look.active = [*look.active, _reference(job)]
                message = f"Saw a job that the controller did not create or forgot: {name}"
                self._emit(look, WARNING, "UnexpectedJob", message)
            if ended == "Complete":
                self._note_success(look, (job.get("status") or {}).get("completionTime"))
        existing = {job["metadata"]["uid"] for job in look.jobs}
        for reference in look.active:
            if reference["uid"] not in existing:
                self._emit(look, NORMAL, "MissingJob", f"Active job went missing: {reference['name']}")
        look.active = [reference for reference in look.active if reference["uid"] in existing]

    def _note_success(self, look: _Look, at: str | None) -> None:
        before = look.status.get("lastSuccessfulTime")
        if at and (not before or parse_time(at) > parse_time(before)):
            look.status["lastSuccessfulTime"] = at

    def _emit(self, look: _Look, kind: str, reason: str, message: str) -> None:
        self._recorder.event(look.cronjob, kind, reason, message)

    # the next Job

    async def _schedule(self, look: _Look) -> Result:
        spec = look.spec
        if spec.get("suspend"):
            return Done
        try:
            zone = zone_of(spec.get("timeZone") or "")
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            self._emit(look, WARNING, "UnknownTimeZone", f'invalid timeZone: "{spec["timeZone"]}": {error}')
            return Done
        try:
            schedule = parse_schedule(spec["schedule"])
        except ValueError as error:
            message = f'unparseable schedule: "{spec["schedule"]}" : {error}'
            self._emit(look, WARNING, "UnparseableSchedule", message)
            return Done
        await self._start_latest(look, schedule, zone)
        following = upcoming(schedule, look.last_time(), look.now, zone)
        return Done if following is None else requeue(following - look.now)

    async def _start_latest(self, look: _Look, schedule: Schedule, zone: tzinfo) -> None:
        at, times = missed(schedule, look.since(), look.now, zone)
        if at is None:
            return
        if times > MANY:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._emit(look, WARNING, "TooManyMissedTimes", message)
        name = f"{look.cronjob['metadata']['name']}-{int(at) // 60}"
        if any(reference["name"] == name for reference in look.active):
            look.status["lastScheduleTime"] = rfc3339(at)
            return
        policy = look.spec.get("concurrencyPolicy")
        if policy == "Forbid" and look.active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._emit(look, NORMAL, "JobAlreadyActive", message)
            return
        if policy == "Replace":
            for reference in look.active:
                await self._delete(look, reference["name"], reference["uid"])
        await self._start(look, _job(look.cronjob, name, at, zone), at)

    async def _start(self, look: _Look, job: Obj, at: float) -> None:
        try:
            made = await self._client.create(JOBS, job)
        except AlreadyExists:
            await self._take_existing(look, key_of(job), at)
            return
        except ApiError as error:
            if is_namespace_ending(error):
                return
            self._emit(look, WARNING, "FailedCreate", f"Error creating job: {error.message}")
            raise
        look.made.append(made)
        self._emit(look, NORMAL, "SuccessfulCreate", f"Created job {made['metadata']['name']}")
        look.active = [*look.active, _reference(made)]
        look.status["lastScheduleTime"] = rfc3339(at)

    async def _take_existing(self, look: _Look, key: Key, at: float) -> None:
        """Record a time as done whose Job exists, created before a crash or by a user under this name."""
        existing = await self._client.get(JOBS, key.name, key.namespace)
        owner = controller_of(existing)
        if owner is not None and owner["uid"] == look.cronjob["metadata"]["uid"] and not end_of(existing):
            look.active = [*look.active, _reference(existing)]
        look.made.append(existing)
        look.status["lastScheduleTime"] = rfc3339(at)

    # removal

    async def _delete(self, look: _Look, name: str, uid: str) -> None:
        namespace = look.cronjob["metadata"]["namespace"]
        look.active = [reference for reference in look.active if reference["uid"] != uid]
        try:
            if await delete_if_exists(self._client, JOBS, name, namespace, propagation="Background", uid=uid):
                self._emit(look, NORMAL, "SuccessfulDelete", f"Deleted job {name}")
        except ApiError as error:
            self._emit(look, WARNING, "FailedDelete", f"Deleted job: {error.message}")
            raise

    async def _prune(self, look: _Look) -> None:
        limits = (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit"))
        for kind, limit in limits:
            most = look.spec.get(limit)
            if most is None:
                continue
            ended = [job for job in look.jobs if end_of(job) == kind and not is_deleting(job)]
            ended.sort(key=_started)
            for job in ended[: max(0, len(ended) - most)]:
                await self._delete(look, key_of(job).name, job["metadata"]["uid"])


def _started(job: Obj) -> tuple[str, str]:
    return (job.get("status") or {}).get("startTime") or creation_time(job), job["metadata"]["name"]


def _reference(job: Obj) -> Obj:
    meta = job["metadata"]
    names = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"kind": "Job", "apiVersion": "batch/v1", **names}


def _job(cronjob: Obj, name: str, at: float, zone: tzinfo) -> Obj:
    template = cronjob["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    when = datetime.fromtimestamp(at, zone).isoformat().replace("+00:00", "Z")
    meta: Obj = {
        "name": name,
        "namespace": cronjob["metadata"]["namespace"],
        "annotations": {**(given.get("annotations") or {}), SCHEDULED: when},
        "ownerReferences": [make_owner(cronjob)],
    }
    if given.get("labels"):
        meta["labels"] = dict(given["labels"])
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": copy_json(template["spec"])}
