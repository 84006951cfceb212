"""The dependencies distributor: propagates what a template depends on to the clusters of the template.

A binding with propagateDeps records its template's dependencies in an annotation. Each dependency that exists gets an
attached binding (or is added to the one it has) with the schedule result to follow. When such an object is created,
changed or deleted, an index over the annotations finds the bindings to reconcile. The objects are looked up only after
the informer has the annotation: one that is created in between would otherwise be missed by both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from karmada.api import well_known
from karmada.api.interpreter_context import Operation
from karmada.api.work import ResourceBinding
from karmada.controllers.concurrently import for_each
from karmada.controllers.context import Context
from karmada.controllers.dependencies import attached, references
from karmada.controllers.detector.policies import NotYet
from karmada.controllers.indexes import traits_of_binding
from karmada.controllers.reinterpretation import reinterpretation, requeue_bindings
from karmada.controllers.templates import Ref, changed, kind_of_binding_key, light_of, ref_of_binding
from karmada.interpreter.operations import INTERPRET_DEPENDENCY, InterpreterError
from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects import meta
from karmada.kube.objects.errors import Conflict, NotFound
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Reconciler, Result, Watch
from karmada.kube.runtime.converge import ResourceWriter
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.queue import Priority, WorkQueue
from karmada.kube.runtime.sharing import by_namespace
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.runtime.writes import remove_finalizer

DISTRIBUTOR: Final = "dependencies-distributor"
_SYNC_TIMEOUT: Final = 30.0
_NOTHING_NAMED: Final = "the Name and LabelSelector in the DependentObjectReference cannot be empty at the same time"


class DependencyInterpreter(Protocol):
    """The operations that are used here."""

    def enabled(self, gvk: GVK, operation: Operation) -> bool: ...

    async def get_dependencies(self, obj: Obj, /) -> Sequence[Obj]: ...


def _propagates(binding: Obj) -> bool:
    return bool((binding.get("spec") or {}).get("propagateDeps"))


def _has_something_to_do(old: Obj | None, new: Obj | None) -> bool:
    """Return whether a binding was there before, or has clusters or goes when it is seen first."""
    return old is not None or (new is not None and (bool(new["spec"].get("clusters")) or meta.is_deleting(new)))


class Distributor(Reconciler):
    name = DISTRIBUTOR
    options = ControllerOptions(lane_of=kind_of_binding_key, shard_of=by_namespace)

    def __init__(self, context: Context, interpreter: DependencyInterpreter) -> None:
        self.workers = context.settings.concurrent_resourcebinding_syncs
        self._client = context.client
        self._clock = context.clock
        self._informers = context.informers
        self._interpreter = interpreter
        self._recorder = context.recorder(DISTRIBUTOR)
        indexes = {references.DEPENDENCIES: references.dependency_index}
        self._informer = context.informers.of(ResourceBinding.gvr, indexes=indexes)
        self._bindings = ResourceWriter(context.client, ResourceBinding.gvr, self._informer)
        self.watches = (
            Watch(
                ResourceBinding.gvr,
                having=(traits_of_binding, "propagateDeps"),
                changed=("metadata.generation", "metadata.deletionTimestamp"),
                when=_has_something_to_do,
            ),
            *reinterpretation(partial(requeue_bindings, self._informer)),
        )
        self._objects: dict[GVK, Informer] = {}
        self._following = False
        self._queue: WorkQueue[Key]

    # objects that others depend on

    def follow_queue(self, queue: WorkQueue[Key]) -> None:
        self._queue = queue

    async def _objects_of(self, gvk: GVK) -> Informer:
        informer = self._objects.get(gvk)
        if informer is None:
            gvr = (await self._client.mapper.mapping(gvk)).gvr
            informer = self._objects.get(gvk) or self._follow(gvk, self._informers.of(gvr, shape=light_of(gvk)))
        informer.start()
        if not informer.synced:
            await with_timeout(self._clock, informer.wait_synced(), _SYNC_TIMEOUT)
        return informer

    def _follow(self, gvk: GVK, informer: Informer) -> Informer:
        """Watch a kind; the caller reads the existing objects itself, so only later changes requeue bindings."""
        self._objects[gvk] = informer
        self._following = True
        try:
            informer.add_handler(partial(self._object_changed, gvk, informer))
        finally:
            self._following = False
        return informer

    def _object_changed(self, gvk: GVK, informer: Informer, old: Obj | None, new: Obj | None) -> None:
        if self._following or (old is not None and new is not None and not changed(old, new)):
            return
        priority = Priority.NEW if informer.synced else Priority.BACKLOG
        self._requeue_dependents(gvk, new or old, priority)
        if old is not None and new is not None and meta.labels(old) != meta.labels(new):
            self._requeue_dependents(gvk, old, priority)

    def _requeue_dependents(self, gvk: GVK, obj: Obj | None, priority: int) -> None:
        if obj is None:
            return
        ref = Ref(gvk, *meta.key(obj))
        for where in references.indexed_under(ref):
            keys = self._informer.keys_by_index(references.DEPENDENCIES, where)
            if keys:
                self._queue.add_all(keys, priority, when=partial(self._depends, ref, meta.labels(obj)))

    def _depends(self, ref: Ref, labels: Mapping[str, str], key: Key) -> bool:
        """Return whether a binding has an object with these labels among its dependencies."""
        binding = self._informer.get(key)
        if binding is None or meta.is_deleting(binding) or ref.namespace not in ("", key.namespace):
            return False
        recorded = references.recorded_on(binding)
        return any(references.refers_to(dependency, ref, labels) for dependency in recorded)

    # reconcile

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(key)
        if binding is None:
            return Done
        if not _propagates(binding) or meta.is_deleting(binding):
            await self._detach_all(binding, self._attached_to(binding))
            await remove_finalizer(self._client, ResourceBinding.gvr, binding, well_known.DEPENDENCIES_FINALIZER)
            return Done
        ref = ref_of_binding(binding)
        if not self._interpreter.enabled(ref.gvk, INTERPRET_DEPENDENCY):
            return Done
        template = await self._client.get(ref.gvk, ref.name, ref.namespace)
        dependencies = await self._dependencies(template)
        wrote = await self._distribute(binding, dependencies)
        if wrote:
            message = f"Get dependencies({references.shown(dependencies)}) succeed."
            self._recorder.event(template, NORMAL, "GetDependenciesSucceed", message)
            message = "Sync schedule results to dependencies succeed."
            self._recorder.event(binding, NORMAL, "SyncScheduleResultToDependenciesSucceed", message)
        return Done

    async def _dependencies(self, template: Obj) -> Sequence[Obj]:
        try:
            return await self._interpreter.get_dependencies(template)
        except InterpreterError as error:
            self._recorder.event(template, WARNING, "GetDependenciesFailed", str(error))
            raise NotYet(str(error)) from error

    async def _distribute(self, binding: Obj, dependencies: Sequence[Obj]) -> bool:
        """Bring the attached bindings in line with the dependencies; return whether anything was written."""
        try:
            recorded = await self._record(binding, dependencies)
            if recorded is None:
                return False
            orphans = await self._orphans(binding, dependencies)
            await self._detach_all(binding, orphans)
            written: list[bool] = []

            async def follow(dependency: Obj) -> None:
                written.append(await self._attach_all(binding, dependency))

            await for_each(dependencies, follow)
        except Conflict:
            raise  # a lost race is no event: it is tried again
        except Exception as error:
            self._recorder.event(binding, WARNING, "SyncScheduleResultToDependenciesFailed", str(error))
            raise
        return recorded or bool(orphans) or any(written)

    async def _record(self, binding: Obj, dependencies: Sequence[Obj]) -> bool | None:
        """Record the dependencies and the finalizer on the binding in one write; wait until the informer has it.

        Return whether the binding was written; None when it is being deleted.
        """
        annotation = references.annotation_of(dependencies)
        key = key_of(binding)

        async def make(current: Obj | None) -> Obj | None:
            if current is None or meta.is_deleting(current):
                return None
            metadata = {
                **current["metadata"],
                "annotations": {**meta.annotations(current), well_known.DEPENDENCIES: annotation},
            }
            if well_known.DEPENDENCIES_FINALIZER not in meta.finalizers(current):
                metadata["finalizers"] = [*meta.finalizers(current), well_known.DEPENDENCIES_FINALIZER]
            return {**current, "metadata": metadata}

        def seen() -> bool:
            found = self._informer.get(key)
            return found is None or meta.annotations(found).get(well_known.DEPENDENCIES) == annotation

        written = await self._bindings.converge(key, make)
        if written is None:
            return None
        if not seen():
            await with_timeout(self._clock, self._informer.until(seen), _SYNC_TIMEOUT)
        return written.outcome != "unchanged"

    # attaching

    async def _attach_all(self, binding: Obj, dependency: Obj) -> bool:
        name, selector = dependency.get("name"), dependency.get("labelSelector")
        if not name and selector is None:
            raise NotYet(_NOTHING_NAMED)
        objects = await self._objects_of(gvk_of(dependency))
        namespace = dependency.get("namespace") or ""
        if name:
            found = objects.get(Key(namespace, name))
            return found is not None and await self._attach(binding, found)
        wrote = False
        for found in objects.list(namespace):
            if references.selected(selector, meta.labels(found)):
                wrote = await self._attach(binding, found) or wrote
        return wrote

    async def _attach(self, binding: Obj, dependency: Obj) -> bool:
        new = attached.snapshot(binding)
        conflicting: list[attached.Strategy] = []

        async def make(current: Obj | None) -> Obj:
            snapshots = attached.with_snapshot(attached.required_by(current), new)
            if attached.is_placed(current):
                return attached.attach(current, dependency, binding, snapshots, {})
            effective = attached.strategy([await self._dependent(found, binding) for found in snapshots])
            conflicting[:] = [effective]
            return attached.attach(current, dependency, binding, snapshots, effective.fields)

        written = await self._bindings.converge(attached.attached_key(binding, dependency), make)
        if written is None:
            return False
        for effective in conflicting:
            if effective.disagreements:
                self._recorder.event(written.object, WARNING, "DependencyPolicyConflict", effective.warning)
        return written.outcome != "unchanged"

    async def _dependent(self, found: Obj, known: Obj | None) -> Obj:
        """Return the binding of a snapshot; NotFound when there is none."""
        key = attached.key_of_snapshot(found)
        if known is not None and key == key_of(known):
            return known
        binding = self._bindings.get(key) or await self._bindings.live(key)
        if binding is None:
            raise NotFound(f'{ResourceBinding.gvr.group_resource} "{key.name}" not found')
        return binding

    # detaching

    def _attached_to(self, binding: Obj) -> list[Obj]:
        return self._informer.by_index(references.DEPENDENCIES, references.attached_to(binding))

    async def _orphans(self, binding: Obj, dependencies: Sequence[Obj]) -> list[Obj]:
        """Attached bindings whose objects are no longer dependencies."""
        orphans = []
        for follower in self._attached_to(binding):
            ref = ref_of_binding(follower)
            labels = await self._labels(ref)
            if not any(references.refers_to(dependency, ref, labels) for dependency in dependencies):
                orphans.append(follower)
        return orphans

    async def _labels(self, ref: Ref) -> dict[str, str] | None:
        try:
            found = (await self._objects_of(ref.gvk)).get(ref.key)
        except NoMatch:
            return None
        return None if found is None else meta.labels(found)

    async def _detach_all(self, binding: Obj, followers: Sequence[Obj]) -> None:
        async def release(follower: Obj) -> None:
            await self._detach(binding, follower)

        await for_each(followers, release)

    async def _detach(self, binding: Obj, follower: Obj) -> None:
        async def make(current: Obj | None) -> Obj | None:
            if current is None:
                return None
            snapshots = attached.without_snapshot(attached.required_by(current), key_of(binding))
            effective: Obj | None = None
            if not attached.is_placed(current):
                dependents = [await self._dependent(found, None) for found in snapshots]
                effective = attached.strategy(dependents).fields if dependents else {}
            return attached.detach(current, binding, snapshots, effective)

        await self._bindings.converge(key_of(follower), make)
