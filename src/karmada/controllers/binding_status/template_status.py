"""The status of templates: what the interpreter makes of the reports of all clusters, written when it is another."""

from __future__ import annotations

from collections.abc import Sequence

from karmada.controllers.templates import Templates
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import AGGREGATE_STATUS, InterpreterError, gvk_of
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder

_TRIES = 5


class TemplateStatus:
    def __init__(self, interpreter: Interpreter, templates: Templates) -> None:
        self._interpreter = interpreter
        self._templates = templates

    async def update(self, reference: Obj, items: Sequence[Obj], recorder: EventRecorder) -> None:
        """`reference` is the spec.resource of a binding, `items` its aggregatedStatus."""
        if not self._interpreter.enabled(gvk_of(reference), AGGREGATE_STATUS):
            return
        template = await self._templates.of(reference)
        for attempt in range(_TRIES):
            if template is None:
                return
            try:
                await self._write(template, items, recorder)
                return
            except NotFound:
                return
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
                template = await self._templates.of(reference)
            except (ApiError, InterpreterError) as error:
                recorder.event(template, WARNING, "AggregateStatusFailed", str(error))
                raise

    async def _write(self, template: Obj, items: Sequence[Obj], recorder: EventRecorder) -> None:
        made = await self._interpreter.aggregate_status(template, items)
        if (made.get("status") or {}) == (template.get("status") or {}):
            return
        await self._templates.write_status(made)
        recorder.event(
            template, NORMAL, "AggregateStatusSucceed", "Update Resource with AggregatedStatus successfully."
        )
