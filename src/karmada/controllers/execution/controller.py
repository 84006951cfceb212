"""Execution controller: applies the manifests of Works in the member clusters and reports the result in their status.

One reconcile of a Work does everything: apply, correct drift, report health and status. A changed Work and a changed or
deleted object in a member both trigger it, so that these never race, and one write of the status is enough. Every
cluster has a lane of its own (see kube/runtime/queue); Works of a cluster that is not ready are parked until it is.
Those of a kind that a webhook interprets have a part of the lane's workers.
While the control plane does not respond (to an agent), objects are kept as the Works were last seen; what is to be
reported waits and is written when it is back.

An object is sent only when what its Work says was not applied yet, or when the object is no longer what was
applied. After a restart that is found by comparing, not by sending.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.interpreter_context import Operation
from karmada.api.work import Work
from karmada.controllers.cluster_state import is_push, is_ready
from karmada.controllers.context import Context
from karmada.controllers.errors import together
from karmada.controllers.execution.member_kinds import Spaces, kinds_of
from karmada.controllers.execution.outages import Outages
from karmada.controllers.execution.status import (
    APPLIED,
    EXECUTION,
    WORK_STATUS,
    Draft,
    ExecutionEvents,
    Reflection,
    Reflector,
    identifier,
    work_of,
)
from karmada.controllers.reinterpretation import Concerns, reinterpretation
from karmada.controllers.shards import by_execution_namespace
from karmada.controllers.works import carries, identity_of, manifests_of
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import INTERPRET_HEALTH, INTERPRET_STATUS, RETAIN, InterpreterError
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, ServiceUnavailable, Unauthorized
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import (
    ControllerOptions,
    Done,
    Enqueue,
    Parked,
    Reconciler,
    Result,
    Retry,
    Watch,
    requeue,
)
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.handled import Handled, content_of
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.queue import Priority, WorkQueue
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.runtime.writes import remove_finalizer
from karmada.members.access import TIMEOUT, NoAccess
from karmada.members.objects import UNKNOWN, KindInMember, Observed

SETTLE: Final = 0.01
"""Seconds for which changes of a member's object are gathered before they are reconciled."""
_LEAVING_SECONDS: Final = 10.0
"""Time-out of deletions in a cluster that is being removed: it may be unreachable without being marked so yet."""
CONTROL_PLANE: Final = ""
"""Among the clusters whose outages are counted: the control plane itself."""
_AWAY = (ConnectionFailed, ServiceUnavailable, Unauthorized)
"""The control plane could not be reached, or did not let us in: nothing was written."""
_INTERPRETED: tuple[Operation, ...] = (RETAIN, INTERPRET_STATUS, INTERPRET_HEALTH)
_SHARE = 4
"""A kind that a webhook interprets may have so large a part of a cluster's workers: one fourth."""
_FAILURES = (ApiError, ConnectionFailed, NoAccess, NoMatch, InterpreterError, TimeoutError)
"""Errors that concern one manifest and not the others."""
log = get_logger("execution")


class SyncFailed(ApiError):
    """Some manifests of a Work could not be applied; the reasons are in the Work's status."""


class _Outcome(NamedTuple):
    """The result for one manifest."""

    object: Obj | None = None
    """The object in the member."""
    written: bool = False
    recreated: bool = False
    error: Exception | None = None


def _dispatch_state(cluster: Obj) -> tuple[object, ...]:
    """Return what of a Cluster decides whether its Works can be applied."""
    spec = cluster.get("spec") or {}
    access = (spec.get("syncMode"), spec.get("apiEndpoint"), spec.get("secretRef"))
    return is_ready(cluster), meta.is_deleting(cluster), *access


class _ControlPlaneAway(Exception):
    """The control plane cannot be written to; `pause` is how many seconds until the next attempt."""

    def __init__(self, pause: float) -> None:
        super().__init__(f"no response from the control plane, next attempt in {pause:g}s")
        self.pause = pause


class _CacheNotSynced(Exception):
    """The member's objects are being listed: the Work is requeued when that is done."""


class Execution(Reconciler):
    name = EXECUTION
    workers = 64
    options = ControllerOptions(lane_of=attrgetter("namespace"), shard_of=by_execution_namespace, grace=2.0)
    """Every cluster has an execution namespace, and with that a lane and a shard.

    A request under way to a member is not awaited for long: its result is found by comparing.
    """

    def __init__(
        self,
        context: Context,
        interpreter: Interpreter,
        *,
        handles: Callable[[Obj], bool] = is_push,
        templates: bool = True,
    ) -> None:
        """Execute the Works of the Clusters that `handles` selects; `templates`: with events on the templates, too."""
        self._client = context.client
        self._interpreter = interpreter
        self._clock = context.clock
        self._sync_timeout = context.settings.cluster_cache_sync_timeout
        self._handles = handles
        self._members = context.members
        self._works = context.informers.of(Work.gvr)
        self._clusters = context.informers.of(Cluster.gvr)
        self._spaces = Spaces(self._members, context.client, interpreter, context.clock, self._object_changed)
        self._outages = Outages(context.clock)
        self._events = ExecutionEvents(context.recorder(EXECUTION), templates=templates)
        self._reflector = Reflector(interpreter, context.recorder(WORK_STATUS))
        self._applied: Handled[Key, bytes] = Handled()
        self._queue: WorkQueue[Key]
        self.watches: Sequence[Watch] = (
            Watch(Work.gvr, changed=SPEC_OR_DELETION),
            *reinterpretation(self._requeue_kinds),
        )

    def follow_queue(self, queue: WorkQueue[Key]) -> None:
        self._queue = queue
        self._works.add_handler(self._spaces.count)
        self._clusters.add_handler(self._cluster_changed)
        self._members.gone.append(self._cluster_gone)

    async def stop(self) -> None:
        self._members.gone.remove(self._cluster_gone)
        await self._spaces.stop()

    # triggers

    async def _requeue_kinds(self, concerns: Concerns, add: Enqueue) -> None:
        async for work in self._works.scan():
            if any(map(concerns, kinds_of(work))):
                add(key_of(work))

    def _object_changed(self, cluster: str, obj: Obj, listed: bool) -> None:
        key = work_of(obj)
        if key is not None and key.namespace == well_known.execution_namespace(cluster):
            self._queue.add_after(key, SETTLE, Priority.REPLAY if listed else Priority.NEW)

    def _cluster_changed(self, old: Obj | None, new: Obj | None) -> None:
        """Resume the Works that are parked when what they wait for may have changed."""
        if new is None or (old is not None and _dispatch_state(old) == _dispatch_state(new)):
            return
        name = new["metadata"]["name"]
        self._outages.pop(name, None)
        if old is not None and is_ready(new):
            self._spaces.revive(name)
        self._queue.retry_now(well_known.execution_namespace(name))
        self._queue.resume(name)

    def _cluster_gone(self, name: str) -> None:
        self._spaces.drop(name)
        self._queue.drop_parked(name)
        self._queue.drop_groups(lambda group: isinstance(group, tuple) and group[0] == name)
        namespace = well_known.execution_namespace(name)
        self._queue.drop(namespace)
        self._queue.add_all(self._forgotten(self._works.keys(namespace)))

    def _forgotten(self, keys: Iterable[Key]) -> Iterator[Key]:
        for key in keys:
            self._applied.forget(key)
            yield key

    # a Work

    async def reconcile(self, key: Key) -> Result:
        work = self._works.get(key)
        if work is None:
            self._applied.forget(key)
            return Done
        name = well_known.cluster_of_namespace(key.namespace)
        if name is None:
            log.error("A Work is in no execution namespace", ApiError("the execution space name is in wrong format"))
            return Done
        cluster = self._clusters.get(Key("", name))
        if cluster is None or not self._handles(cluster):
            return self._wait_for(name, key)
        if name in self._outages and (pause := self._outages.hold(name)) > 0:
            self._wait_for(name, key)
            return requeue(pause)
        try:
            if meta.is_deleting(work):
                return await self._finish(work, cluster)
            if not self._has_turn(key, work, name):
                return Parked
            return await self._sync(key, work, cluster)
        except _ControlPlaneAway as away:
            self._wait_for(CONTROL_PLANE, key)
            return requeue(away.pause)

    def _has_turn(self, key: Key, work: Obj, cluster: str) -> bool:
        """Return whether a Work may be reconciled now: a slow webhook holds up its own kind only."""
        for manifest in manifests_of(work):
            if self._interpreter.remote(manifest, _INTERPRETED):
                return self._queue.enter(key, (cluster, gvk_of(manifest)), _SHARE)
        return True

    def _wait_for(self, cluster: str, key: Key) -> Result:
        self._queue.park(key, cluster)
        return Done

    def _wait_for_change(self, cluster: Obj, key: Key) -> Result:
        """Park what waits for a Cluster, unless it has changed while the key was being reconciled."""
        current = self._clusters.get(key_of(cluster))
        if current is not None and _dispatch_state(current) != _dispatch_state(cluster):
            return Retry
        return self._wait_for(meta.name(cluster), key)

    async def _sync(self, key: Key, work: Obj, cluster: Obj) -> Result:
        name = cluster["metadata"]["name"]
        draft = Draft(work, self._clock.now())
        spec = work.get("spec") or {}
        suspended = bool(spec.get("suspendDispatching"))
        dispatching = draft.dispatching(suspended)
        ready = is_ready(cluster)
        failed: list[Exception] = []
        if suspended or not ready:
            outcomes = await self._observe_all(name, work, follow=ready and draft.status_of(APPLIED) == "True")
        else:
            try:
                outcomes = await self._apply_all(key, work, name, draft)
            except _CacheNotSynced:
                return Done
            failed = [outcome.error for outcome in outcomes if outcome.error is not None]
        changed, reflections = await self._report(key, work, outcomes, draft)
        await self._write(work, draft)
        if dispatching:
            self._events.dispatching(work, dispatching)
        for reflection in changed:
            self._reflector.emit(work, reflection)
        if not suspended and not ready:
            return self._wait_for_change(cluster, key)
        failed += [reflection.error for reflection in reflections if reflection.error is not None]
        if failed:
            raise SyncFailed(together(failed)) from failed[0]
        return Done

    async def _observe_all(self, cluster: str, work: Obj, follow: bool) -> list[_Outcome]:
        """Return what is known of the objects, without changing them."""
        return [await self._observe(cluster, manifest, follow) for manifest in manifests_of(work)]

    async def _observe(self, cluster: str, manifest: Obj, follow: bool) -> _Outcome:
        try:
            kind = await self._spaces.kind(self._spaces.get(cluster), manifest)
        except _FAILURES as error:
            log.v(1).info("Cannot observe an object", cluster=cluster, err=str(error))
            return _Outcome()
        if follow:
            kind.watch()
        observed = kind.observe(key_of(manifest))
        return _Outcome(None if observed is UNKNOWN else observed)

    # applying

    async def _apply_all(self, key: Key, work: Obj, cluster: str, draft: Draft) -> list[_Outcome]:
        content = content_of(work)
        current = self._applied.is_done(key, content)
        was_applied = draft.status_of(APPLIED) == "True"
        manifests = manifests_of(work)
        outcomes = [
            await self._apply(key, cluster, manifest, current=current, was_applied=was_applied)
            for manifest in manifests
        ]
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        recreated = any(outcome.recreated for outcome in outcomes)
        if errors:
            self._applied.forget(key)
            self._report_failure(draft, work, cluster, outcomes, errors)
            return outcomes
        self._applied.done(key, content)
        if was_applied and not any(outcome.written for outcome in outcomes):
            return outcomes
        if recreated:
            draft.set(APPLIED, "True", "ReCreateSuccessful", "Manifest has been successfully applied")
        elif not (current and was_applied):
            draft.set(APPLIED, "True", "AppliedSuccessful", "Manifest has been successfully applied")
            self._events.synced(work, cluster)
        else:
            return outcomes  # a corrected drift is no event
        for manifest in manifests:
            self._events.applied(manifest, cluster)
        return outcomes

    def _report_failure(
        self, draft: Draft, work: Obj, cluster: str, outcomes: list[_Outcome], errors: list[Exception]
    ) -> None:
        text = together(errors)
        if all(outcome.recreated for outcome in outcomes if outcome.error is not None):
            draft.set(APPLIED, "False", "ReCreateFailed", text)
        else:
            done = f"{len(outcomes) - len(errors)}/{len(outcomes)}"
            draft.set(APPLIED, "False", "AppliedFailed", f"Failed to apply all manifests ({done}): {text}")
        for manifest, outcome in zip(manifests_of(work), outcomes, strict=True):
            if outcome.error is not None:
                self._events.applied(manifest, cluster, outcome.error)
        self._events.synced(work, cluster, text)

    async def _apply(self, key: Key, cluster: str, manifest: Obj, *, current: bool, was_applied: bool) -> _Outcome:
        recreating = False
        try:
            kind = await self._spaces.kind(self._spaces.get(cluster), manifest)
            observed = kind.observe(key_of(manifest))
            if observed is UNKNOWN and was_applied:
                observed = await self._find(key, kind, manifest)
            if current and isinstance(observed, dict) and kind.settled(manifest, observed):
                return _Outcome(observed)
            recreating = observed is None and was_applied
            outcome, obj = await kind.apply(manifest, observed)
            if cluster in self._outages:
                self._end_outage(cluster)
            return _Outcome(obj, outcome != "unchanged", recreating)
        except _FAILURES as error:
            self._check_outage(cluster, error)
            return _Outcome(error=error, recreated=recreating)

    def _check_outage(self, cluster: str, error: Exception) -> None:
        if isinstance(error, ConnectionFailed):
            self._outages.failed(cluster)
        elif isinstance(error, ApiError) and cluster in self._outages:
            self._end_outage(cluster)

    def _end_outage(self, cluster: str) -> None:
        del self._outages[cluster]
        self._queue.resume(cluster)

    async def _find(self, key: Key, kind: KindInMember, manifest: Obj) -> Observed:
        """Return an object that an earlier process applied: listed with all others of its kind, if possible."""
        kind.watch()
        left = kind.started_at + self._sync_timeout - self._clock.monotonic()
        if left > 0:
            self._await_list(key, kind, left)
            raise _CacheNotSynced
        self._resume(kind)
        return await kind.live(key_of(manifest))

    def _await_list(self, key: Key, kind: KindInMember, seconds: float) -> None:
        assert kind.informer is not None
        if not kind.waiting:
            kind.informer.when_synced(lambda: self._resume(kind))
            self._queue.add_after(key, seconds)  # for all that wait: they continue without the list
        kind.waiting.add(key)

    def _resume(self, kind: KindInMember) -> None:
        waiting, kind.waiting = kind.waiting, set()
        for key in sorted(waiting):
            self._queue.add(key, Priority.BACKLOG)

    # reporting

    async def _report(
        self, key: Key, work: Obj, outcomes: list[_Outcome], draft: Draft
    ) -> tuple[list[Reflection], list[Reflection]]:
        """Put the status of the objects into the draft; what of that changed, and all."""
        identifiers = [identifier(ordinal, manifest) for ordinal, manifest in enumerate(manifests_of(work))]
        draft.keep(identifiers)
        changed, reflections = [], []
        for identified, outcome in zip(identifiers, outcomes, strict=False):
            obj = outcome.object
            if obj is None or work_of(obj) != key:
                continue
            reflection = await self._reflector.reflect(identified, obj)
            reflections.append(reflection)
            if reflection.entry is None or draft.report(reflection.entry):
                changed.append(reflection)
        return changed, reflections

    async def _write(self, work: Obj, draft: Draft) -> None:
        changed = draft.patch()
        if not changed:
            return
        metadata = work["metadata"]
        patch = {"metadata": {"uid": metadata["uid"]}, "status": changed}
        await self._write_to_plane(
            self._client.patch(Work.gvr, metadata["name"], metadata["namespace"], patch, subresource="status")
        )

    async def _write_to_plane(self, write: Coroutine[Any, Any, Obj]) -> None:
        if CONTROL_PLANE in self._outages and (pause := self._outages.hold(CONTROL_PLANE)) > 0:
            write.close()
            raise _ControlPlaneAway(pause)
        try:
            written = await write
        except _AWAY as error:
            self._outages.failed(CONTROL_PLANE)
            log.v(1).info("Not reported yet", err=str(error))
            raise _ControlPlaneAway(self._outages.left(CONTROL_PLANE)) from error
        self._works.wrote(written)
        if CONTROL_PLANE in self._outages:
            self._end_outage(CONTROL_PLANE)

    # deletion of a Work

    async def _finish(self, work: Obj, cluster: Obj) -> Result:
        key, name = key_of(work), cluster["metadata"]["name"]
        if well_known.EXECUTION_FINALIZER not in meta.finalizers(work):
            return Done
        if is_ready(cluster):
            preserve = (work.get("spec") or {}).get("preserveResourcesOnDeletion")
            cleaning = self._leave_objects(work, name) if preserve else self._delete_objects(work, name)
            await with_timeout(self._clock, cleaning, _LEAVING_SECONDS if meta.is_deleting(cluster) else TIMEOUT)
        elif not meta.is_deleting(cluster):
            log.v(1).info("Not deleting yet", work=str(key), err=f"cluster({name}) not ready")
            return self._wait_for(name, key)
        await self._write_to_plane(self._without_finalizer(work))
        self._applied.forget(key)
        return Done

    async def _without_finalizer(self, work: Obj) -> Obj:
        finalizer = well_known.EXECUTION_FINALIZER
        return (await remove_finalizer(self._client, Work.gvr, work, finalizer, update=True)).object

    async def _delete_objects(self, work: Obj, cluster: str) -> None:
        for manifest in manifests_of(work):
            if self._is_replaced(work, manifest):
                continue
            kind = await self._kind(cluster, manifest)
            if kind is not None:
                await kind.delete(manifest)

    def _is_replaced(self, work: Obj, manifest: Obj) -> bool:
        """Return whether another Work carries this object now: earlier versions named some Works otherwise."""
        name = well_known.work_name(manifest["kind"], meta.name(manifest), meta.namespace(manifest))
        if name == work["metadata"]["name"]:
            return False
        other = self._works.get(Key(work["metadata"]["namespace"], name))
        return other is not None and not meta.is_deleting(other) and carries(other, identity_of(manifest))

    async def _leave_objects(self, work: Obj, cluster: str) -> None:
        for manifest in manifests_of(work):
            kind = await self._kind(cluster, manifest)
            if kind is not None:
                await kind.release(manifest)

    async def _kind(self, cluster: str, manifest: Obj) -> KindInMember | None:
        """Return None for a kind that neither the control plane nor the member has any more."""
        try:
            return await self._spaces.kind(self._spaces.get(cluster), manifest)
        except NoAccess as error:
            raise ApiError(str(error)) from error
        except NoMatch:
            return None
