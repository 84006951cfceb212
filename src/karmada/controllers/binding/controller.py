"""Binding controller: one Work per target cluster.

Renders the template of a binding for every cluster that the binding names, and makes the Works in the execution
namespaces equal to that set. Works of clusters that left the set are deleted first, so that a move never runs twice as
many replicas as wanted. Both kinds of bindings work the same way.

A Work that a user deletes is recreated at the next change of its binding, not at once. Deletions of Works trigger a
reconcile only where one is waiting for them. Bindings with many clusters have a share of the workers, so that a few of
them do not keep all others waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from karmada.api import well_known
from karmada.api.work import Work
from karmada.controllers.binding.kinds import BindingKind
from karmada.controllers.binding.manifests import Renderer
from karmada.controllers.binding.targets import allowed, is_suspended, purged, targets
from karmada.controllers.concurrently import for_each, outcomes_of
from karmada.controllers.context import GROUPED, Context
from karmada.controllers.errors import together
from karmada.controllers.indexes import WORKS_OF, owners_of_work
from karmada.controllers.reinterpretation import reinterpretation, requeue_bindings
from karmada.controllers.templates import Templates, kind_of_binding_key, ref_of_binding, resource_of_binding
from karmada.controllers.works import (
    Identity,
    WantedWork,
    WorkBeingDeleted,
    Works,
    identity_of,
    longer_name,
    manifests_of,
)
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Parked, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.queue import WorkQueue
from karmada.kube.runtime.sharing import by_namespace
from karmada.kube.runtime.time_slice import TimeSlice
from karmada.kube.runtime.writes import remove_finalizer
from karmada.overrides.hook import Override
from karmada.overrides.triggers import Triggers

_PURGE_PAUSE = 5.0
_WIDE = 64
"""A binding with more clusters than that takes turns with others like it,"""
_WIDE_SHARE = 16
"""which have this part of the workers: one sixteenth."""
_WRITES_AT_ONCE = 32
"""Writes of one binding at once; it renders as many at once where the interpreter is remote."""
"""Group, kind, namespace and name of an object."""


class Binding(Reconciler):
    options = ControllerOptions(lane_of=kind_of_binding_key, shard_of=by_namespace)

    def __init__(
        self,
        context: Context,
        kind: BindingKind,
        interpreter: Interpreter,
        templates: Templates,
        triggers: Triggers,
        override: Override | None = None,
        synced: Callable[[Obj], bool] = lambda _reference: False,
    ) -> None:
        """`triggers` map changes of override policies and clusters to the bindings that render differently.

        `synced` returns whether another controller syncs a template to every cluster.
        """
        self.name = kind.controller
        self.workers = max(GROUPED, kind.syncs(context.settings))
        self._kind = kind
        self._client = context.client
        self._interpreter = interpreter
        self._override = override
        self._synced = synced
        self._templates = templates
        self._carries_state = context.gates.enabled("StatefulFailoverInjection")
        self._recorder = context.recorder(kind.controller)
        self._bindings = context.informers.of(kind.gvr)
        self._works = Works(context)
        self._works.informer.add_index(WORKS_OF, owners_of_work)
        self._awaited: set[Key] = set()
        self._queue: WorkQueue[Key]
        self.watches: Sequence[Watch] = (
            Watch(kind.gvr, changed=SPEC_OR_DELETION),
            Watch(Work.gvr, on=("DELETED",), when=self._awaited_end, map_to=kind.of_work),
            *triggers.watches(),
            triggers.cluster_watch(),
            *reinterpretation(partial(requeue_bindings, self._bindings)),
        )

    def follow_queue(self, queue: WorkQueue[Key]) -> None:
        self._queue = queue

    def _awaited_end(self, old: Obj | None, new: Obj | None) -> bool:
        if new is not None or old is None or key_of(old) not in self._awaited:
            return False
        self._awaited.discard(key_of(old))
        return True

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(key)
        if binding is None:
            return Done
        if meta.is_deleting(binding):
            await self._clean_up(binding)
            return Done
        if len(targets(binding["spec"])) > _WIDE and not self._queue.enter(key, self.name, _WIDE_SHARE):
            return Parked
        works = self._works_of(binding)
        removed = await self._remove_orphans(binding, works)
        if self._is_purging(binding, works):
            return requeue(_PURGE_PAUSE)
        template = await self._templates.of(resource_of_binding(binding))
        if template is not None:
            await self._ensure(binding, template, removed)
            await self._delete(_renamed(binding, works))
        return Done

    def _works_of(self, binding: Obj) -> list[Obj]:
        identity = self._kind.id_of(binding)
        return self._works.informer.by_index(WORKS_OF, identity) if identity else []

    # removals

    async def _clean_up(self, binding: Obj) -> None:
        """Delete the Works and remove the finalizer; the binding does not wait for the Works' own finalizers."""
        await self._remove(binding, self._works_of(binding))
        await remove_finalizer(self._client, self._kind.gvr, binding, self._kind.finalizer)

    async def _remove_orphans(self, binding: Obj, works: list[Obj]) -> bool:
        """Delete Works of clusters that are no longer targets; return whether there were any."""
        stay, template = allowed(binding["spec"]), _identity(binding)
        orphans = [
            work
            for work in works
            if not meta.is_deleting(work) and (_cluster(work) not in stay or _is_of_another(template, work))
        ]
        if not orphans:
            return False
        try:
            await self._remove(binding, orphans)
        except ApiError as error:
            self._recorder.event(binding, WARNING, "CleanupWorkFailed", str(error))
            raise
        return True

    async def _remove(self, binding: Obj, works: Sequence[Obj]) -> None:
        """Delete Works, but only release those of a synced Namespace: deleting it would delete all of its content."""
        if not works or not self._synced(resource_of_binding(binding)):
            await self._delete(works)
            return
        await for_each(works, self._release)
        clusters = ", ".join(sorted(filter(None, map(_cluster, works))))
        text = f"Namespaces are synced to every cluster: it stays in {clusters}, whatever the placement says."
        self._recorder.event(binding, NORMAL, "NamespaceKept", text)

    async def _release(self, work: Obj) -> None:
        """Remove the labels and annotations that tie the Work to this binding."""
        metadata = work["metadata"]
        marks = dict.fromkeys(filter(None, (self._kind.name_annotation, self._kind.namespace_annotation)))
        patch = {"metadata": {"uid": metadata["uid"], "labels": {self._kind.id_label: None}, "annotations": marks}}
        try:
            written = await self._client.patch(Work.gvr, metadata["name"], metadata["namespace"], patch)
        except NotFound:
            return
        self._works.informer.wrote(written)

    async def _delete(self, works: Iterable[Obj]) -> None:
        going = [work for work in works if not meta.is_deleting(work)]
        if not going:
            return
        outcomes = await outcomes_of(going, self._works.delete, limit=_WRITES_AT_ONCE)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if errors:
            raise ApiError(together(errors)) from errors[0]

    def _is_purging(self, binding: Obj, works: list[Obj]) -> bool:
        """Return whether a cluster that is evicted with a blocking purge mode still has its Work."""
        places = purged(binding["spec"])
        left = [key_of(work) for work in works if _cluster(work) in places] if places else []
        self._awaited.update(left)
        return bool(left)

    # creations and updates

    async def _ensure(self, binding: Obj, template: Obj, changed: bool) -> None:
        outcomes: list[bool | BaseException]
        try:
            outcomes = await self._ensure_all(binding, template)
        except InterpreterError as error:
            outcomes = [error]
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if errors:
            self._fail(binding, template, errors)
        changed = changed or any(outcomes)
        if changed or not outcomes:
            message = f"Sync work of {self._kind.shown(binding)} successful."
            for obj in (binding, template):
                self._recorder.event(obj, NORMAL, "SyncWorkSucceed", message)

    async def _ensure_all(self, binding: Obj, template: Obj) -> list[bool | BaseException]:
        """For each target: whether its Work was written, or the error. Tasks are for those that have to be written."""
        spec = binding["spec"]
        goals = targets(spec)
        renderer = Renderer(
            self._kind, binding, template, goals, self._interpreter, self._override, carries_state=self._carries_state
        )
        at_once = _WRITES_AT_ONCE if renderer.is_remote else 1
        rendered = await outcomes_of(goals, partial(self._render, renderer, spec, TimeSlice()), limit=at_once)
        missing = [work for work in rendered if isinstance(work, WantedWork)]
        written = iter(await outcomes_of(missing, self._write, limit=_WRITES_AT_ONCE))
        return [next(written) if isinstance(work, WantedWork) else work or False for work in rendered]

    async def _render(self, renderer: Renderer, spec: Obj, turn: TimeSlice, cluster: str) -> WantedWork | None:
        """Return the Work of one cluster, unless it is there."""
        if turn.is_over():
            await turn.next()
        rendered = await renderer.render(cluster)
        wanted = WantedWork(
            cluster,
            rendered.manifest,
            labels=rendered.labels,
            annotations=rendered.annotations,
            suspend_dispatching=is_suspended(spec, cluster),
            preserve_resources_on_deletion=bool(spec.get("preserveResourcesOnDeletion")),
        )
        return self._works.missing(wanted)

    async def _write(self, wanted: WantedWork) -> bool:
        """Create or update a Work; return whether it was written."""
        try:
            written = await self._works.write(wanted)
        except WorkBeingDeleted as error:
            self._awaited.add(error.key)
            raise
        return written.outcome != "unchanged"

    def _fail(self, binding: Obj, template: Obj, errors: list[BaseException]) -> None:
        for error in errors:
            if not isinstance(error, Exception):
                raise error
        if all(isinstance(error, Conflict) for error in errors):
            raise errors[0]
        message = together(errors)
        self._recorder.event(binding, WARNING, "SyncWorkFailed", message)
        self._recorder.event(template, WARNING, "SyncWorkFailed", message)
        raise ApiError(message) from errors[0]


def _is_of_another(template: Identity, work: Obj) -> bool:
    """Return whether a Work carries another object than the template, as overrides of old versions could rename it."""
    return any(identity_of(manifest) != template for manifest in manifests_of(work))


def _identity(binding: Obj) -> Identity:
    gvk, namespace, name = ref_of_binding(binding)
    return gvk.group, gvk.kind, namespace, name


def _renamed(binding: Obj, works: Iterable[Obj]) -> list[Obj]:
    """Works that an earlier version named otherwise; the Works that replace them exist by now."""
    resource = resource_of_binding(binding)
    name = well_known.work_name(resource["kind"], resource["name"], resource.get("namespace") or "")
    others = [work for work in works if work["metadata"]["name"] != name]
    if others:
        longer = longer_name(name, _identity(binding))
        others = [work for work in others if work["metadata"]["name"] != longer]
    stay = allowed(binding["spec"]) if others else ()
    return [work for work in others if _cluster(work) in stay]


def _cluster(work: Obj) -> str | None:
    return well_known.cluster_of_namespace(work["metadata"]["namespace"])
