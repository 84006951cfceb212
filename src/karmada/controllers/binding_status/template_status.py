"""The status of templates: what the interpreter aggregates from the reports of all clusters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from karmada.controllers.templates import Templates
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import AGGREGATE_STATUS, InterpreterError
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import converge
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder


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
