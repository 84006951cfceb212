"""What a template gets from the summary of its binding: a status, and events about clusters in mode Pull.

The status is what the interpreter aggregates from the reports of all clusters. An agent has no rights in the namespaces
of templates; it reports in its Work whether the manifest is applied, and why not. When the summary of a binding says
something else of such a cluster than before, the template gets the event that the execution controller emits in mode
Push.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from karmada.controllers.cluster_state import is_pull
from karmada.controllers.execution.status import emit_applied
from karmada.controllers.templates import Templates
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import AGGREGATE_STATUS, InterpreterError
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import converge
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key


class TemplateStatus:
    def __init__(self, interpreter: Interpreter, templates: Templates) -> None:
        self._interpreter = interpreter
        self._templates = templates

    async def update(self, reference: Obj, items: Sequence[Obj], recorder: EventRecorder) -> None:
        """Write the status; `reference` is the spec.resource of a binding, `items` its aggregatedStatus."""
        if not self._interpreter.enabled(gvk_of(reference), AGGREGATE_STATUS):
            return
        template = await self._templates.of(reference)
        if template is None:
            return

        async def make(current: Obj | None) -> Obj | None:
            if current is None:
                return None
            made = await self._interpreter.aggregate_status(current, items)
            return current if (made.get("status") or {}) == (current.get("status") or {}) else made

        try:
            written = await converge(make, template, self._put, partial(self._templates.of, reference))
        except Conflict:
            raise
        except (ApiError, InterpreterError) as error:
            recorder.event(template, WARNING, "AggregateStatusFailed", str(error))
            raise
        if written is not None and written.outcome != "unchanged":
            message = "Update Resource with AggregatedStatus successfully."
            recorder.event(template, NORMAL, "AggregateStatusSucceed", message)

    async def _put(self, _current: Obj | None, wanted: Obj) -> Obj:
        return await self._templates.write_status(wanted)


class PullEvents:
    def __init__(self, recorder: EventRecorder, clusters: Informer) -> None:
        self._recorder = recorder
        self._clusters = clusters

    def emit(self, reference: Obj, before: Sequence[Obj], items: Sequence[Obj]) -> None:
        """Emit what is new in `items`, the aggregatedStatus of a binding whose spec.resource is `reference`."""
        metadata = {key: reference.get(key) or "" for key in ("namespace", "name", "uid")}
        template = {"apiVersion": reference["apiVersion"], "kind": reference["kind"], "metadata": metadata}
        for item in _changed(before, items):
            name = item["clusterName"]
            cluster = self._clusters.get(Key("", name))
            if cluster is None or not is_pull(cluster):
                continue
            emit_applied(self._recorder, template, name, None if item.get("applied") else item["appliedMessage"])


def _changed(before: Sequence[Obj], items: Sequence[Obj]) -> Iterator[Obj]:
    """Yield the items that say something else than before about whether the manifest is applied."""
    known = {item["clusterName"]: _said(item) for item in before}
    return (item for item in items if any(_said(item)) and _said(item) != known.get(item["clusterName"]))


def _said(item: Obj) -> tuple[bool, str]:
    return bool(item.get("applied")), item.get("appliedMessage") or ""
