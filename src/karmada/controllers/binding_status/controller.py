"""Binding status controller: aggregates the status of a binding's Works into the binding and its template.

Works of several clusters change within moments of each other, so their reports are gathered for a short while and
written once; for longer while some clusters have not reported, and for many clusters (see gathering). Conditions have
other writers, so they are written with the resourceVersion they were made from; aggregatedStatus belongs to this
controller alone and is patched without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.controllers.binding.kinds import BindingKind
from karmada.controllers.binding.targets import allowed, targets
from karmada.controllers.binding_status.aggregation import FULLY_APPLIED, Report, aggregate, fully_applied
from karmada.controllers.binding_status.reports import Gathering, Reports
from karmada.controllers.binding_status.template_status import PullEvents, TemplateStatus
from karmada.controllers.context import GROUPED, Context
from karmada.controllers.execution.status import EXECUTION
from karmada.controllers.indexes import (
    WORKS_OF,
    owners_of_work,
    traits_of_work,
)
from karmada.controllers.reinterpretation import reinterpretation, requeue_bindings
from karmada.controllers.templates import kind_of_binding_key, resource_of_binding
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.converge import ResourceWriter, converge
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.sharing import by_namespace

SETTLE: Final = 0.01
"""Seconds for which reports are gathered."""
MAX_WAIT: Final = 0.25
"""Seconds for which a summary waits for clusters that have not reported yet."""


def _in_use(binding: Obj) -> bool:
    """Scheduled, or required by a binding that is."""
    status = binding.get("status") or {}
    return bool(status.get("lastScheduledTime") or status.get("aggregatedStatus"))


def _awaits_first_report(binding: Obj, reported: int) -> bool:
    """Return whether there is nothing to summarise: no cluster has reported, now or before."""
    if reported or (binding.get("status") or {}).get("aggregatedStatus"):
        return False
    return bool(targets(binding["spec"]))


class BindingStatus(Reconciler):
    options = ControllerOptions(lane_of=kind_of_binding_key, shard_of=by_namespace)

    def __init__(self, context: Context, kind: BindingKind, template_status: TemplateStatus) -> None:
        self.name = kind.status_controller
        self.workers = max(GROUPED, kind.syncs(context.settings))
        self._kind = kind
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder(kind.status_controller)
        self._template_status = template_status
        self._pull_events = PullEvents(context.recorder(EXECUTION), context.informers.of(Cluster.gvr))
        self._bindings = ResourceWriter(context.client, kind.gvr, context.informers.of(kind.gvr))
        self._works = context.informers.of(Work.gvr, indexes={WORKS_OF: owners_of_work})
        self._reports = Reports(self._works, context.clock)
        self._gathering = Gathering(context.clock)
        self.watches: Sequence[Watch] = (
            Watch(
                kind.gvr,
                on=("ADDED", "MODIFIED"),
                changed=("spec.resource.resourceVersion",),
                when=self._is_in_use,
                after=SETTLE,
            ),
            Watch(
                Work.gvr,
                on=("MODIFIED", "DELETED"),
                having=(traits_of_work, kind.name_annotation),
                changed=("status", "metadata.labels"),
                when=self._counted,
                map_to=kind.of_work,
                after=SETTLE,
            ),
            *reinterpretation(partial(requeue_bindings, self._bindings.informer)),
        )

    def _is_in_use(self, old: Obj | None, new: Obj | None) -> bool:
        """Return whether a binding is in use and, if it was listed, there may be something to summarise."""
        if new is None or not _in_use(new):
            return False
        if old is not None:
            return True
        reported = (new.get("status") or {}).get("aggregatedStatus")
        return bool(reported or self._works.keys_by_index(WORKS_OF, self._kind.id_of(new)))

    def _counted(self, old: Obj | None, new: Obj | None) -> bool:
        """Return whether a Work of a binding reports something else, was claimed or is gone; these are counted."""
        assert old is not None
        if new is not None and old.get("status") == new.get("status") and not self._claimed(old, new):
            return False
        keys = self._kind.of_work(old if new is None else new)
        for key in keys:
            if new is not None:
                self._reports.changed(key, new)
            self._gathering.reported(key)
        return True

    def _claimed(self, old: Obj, new: Obj) -> bool:
        """Return whether an existing Work was claimed by a binding, as those of namespace sync are."""
        label = self._kind.id_label
        return meta.labels(old).get(label) != meta.labels(new).get(label)

    async def reconcile(self, key: Key) -> Result:
        wait = self._gathering.remaining(key)
        if wait > 0:
            return requeue(wait)
        binding = self._bindings.get(key)
        if binding is None or meta.is_deleting(binding):
            self._gathering.forget(key)
            self._reports.forget(key)
            return Done
        reference = resource_of_binding(binding)
        reports = await self._reports.read(key, self._kind.id_of(binding), reference)
        if not reports and not _in_use(binding):
            return Done  # nothing was decided yet
        reported = sum(report.is_reported for report in reports)
        if _awaits_first_report(binding, reported):
            return Done  # that report triggers a reconcile
        goals = targets(binding["spec"])
        missing = len(goals) - reported
        wait = self._gathering.await_missing(key, missing, MAX_WAIT) if missing > 0 else 0.0
        if wait > 0:
            return requeue(wait)
        self._gathering.was_read(key, len(goals))
        try:
            items = await self._summarise(binding, reference, reports)
            await self._template_status.update(reference, items, self._recorder)
        except ApiError:
            self._gathering.forget(key)
            raise
        return Done

    def disown(self, owns: Callable[[Key], bool]) -> None:
        self._reports.disown(owns)

    async def stop(self) -> None:
        await self._reports.stop()

    async def _summarise(self, binding: Obj, reference: Obj, reports: Sequence[Report]) -> list[Obj]:
        try:
            items = aggregate(reports)
            written = await self._write(binding, items)
        except Conflict:
            raise
        except ApiError as error:
            self._recorder.event(binding, WARNING, "AggregateStatusFailed", str(error))
            raise
        if written:
            before = (binding.get("status") or {}).get("aggregatedStatus") or ()
            self._pull_events.emit(reference, before, items)
            message = f"Update {self._kind.shown(binding)} with AggregatedStatus successfully."
            self._recorder.event(binding, NORMAL, "AggregateStatusSucceed", message)
        return items

    async def _write(self, binding: Obj, items: list[Obj]) -> bool:
        """Write the status; return whether it changed."""
        key = key_of(binding)

        async def make(current: Obj | None) -> Obj | None:
            return None if current is None else self._with_status(current, items)

        written = await converge(make, binding, self._put, partial(self._bindings.live, key))
        if written is None or written.outcome == "unchanged":
            return False
        self._bindings.informer.wrote(written.object)
        return True

    def _with_status(self, binding: Obj, items: list[Obj]) -> Obj:
        status = {**(binding.get("status") or {})}
        if (status.get("aggregatedStatus") or []) != items:
            status["aggregatedStatus"] = items
        condition = fully_applied(items, allowed(binding["spec"]))
        found = meta.get_condition(status.get("conditions"), FULLY_APPLIED)
        if found is None or any(found.get(field) != value for field, value in condition.items()):
            status["conditions"] = meta.set_condition(status.get("conditions"), condition, self._clock.now())
        return {**binding, "status": status}

    async def _put(self, current: Obj | None, wanted: Obj) -> Obj:
        """Patch the status; with a resourceVersion only if conditions changed, since these have other writers."""
        assert current is not None
        metadata, before = current["metadata"], current.get("status") or {}
        changed = {field: value for field, value in wanted["status"].items() if before.get(field) is not value}
        precondition = {"uid": metadata["uid"]}
        if "conditions" in changed:
            precondition["resourceVersion"] = metadata["resourceVersion"]
        patch = {"metadata": precondition, "status": changed}
        return await self._client.patch(
            self._kind.gvr, metadata["name"], metadata.get("namespace", ""), patch, subresource="status"
        )
