"""The manifestStatuses item of one object: the status that the interpreter reflects, and its health."""

from __future__ import annotations

from typing import Final, NamedTuple

from karmada.api import well_known
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import INTERPRET_HEALTH, InterpreterError
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder
from karmada.kube.runtime.keys import Key

CONTROLLER: Final = "work-status-controller"
HEALTHY, UNHEALTHY, UNKNOWN = "Healthy", "Unhealthy", "Unknown"


def work_of(obj: Obj) -> Key | None:
    """Return the Work that an object in a member names as its origin."""
    annotations = meta.annotations(obj)
    namespace, name = annotations.get(well_known.WORK_NAMESPACE), annotations.get(well_known.WORK_NAME)
    return Key(namespace, name) if namespace and name else None


def identifier(ordinal: int, manifest: Obj) -> Obj:
    """Return the identifier of a manifest in manifestStatuses; empty fields are left out, except the resource."""
    group, version, kind = gvk_of(manifest)
    namespace = meta.namespace(manifest)
    return {
        "ordinal": ordinal,
        **({"group": group} if group else {}),
        "version": version,
        "kind": kind,
        "resource": "",
        **({"namespace": namespace} if namespace else {}),
        "name": meta.name(manifest),
    }


class PendingEvent(NamedTuple):
    """An event to emit once the status is written."""

    type: str
    reason: str
    message: str


class Reflection(NamedTuple):
    entry: Obj | None
    """An item of manifestStatuses; None when the status could not be taken."""
    events: tuple[PendingEvent, ...]
    error: InterpreterError | None = None


class Reflector:
    def __init__(self, interpreter: Interpreter, recorder: EventRecorder) -> None:
        self._interpreter = interpreter
        self._recorder = recorder

    async def reflect(self, identified: Obj, obj: Obj) -> Reflection:
        """Return the status of the object in a member that a manifest with this identifier has become."""
        shown = f"{obj['kind']}/{meta.namespace(obj)}/{meta.name(obj)}"
        try:
            status = await self._interpreter.reflect_status(obj)
        except InterpreterError as error:
            message = f"Reflect status for object({shown}) failed, err: {error}."
            return Reflection(None, (PendingEvent(WARNING, "ReflectStatusFailed", message),), error)
        reflected = PendingEvent(NORMAL, "ReflectStatusSucceed", f"Reflect status for object({shown}) succeed.")
        health, verdict = await self._health(obj, shown)
        entry: Obj = {"identifier": identified, "health": health}
        if status is not None:
            entry["status"] = status
        return Reflection(entry, (reflected, *verdict))

    async def _health(self, obj: Obj, shown: str) -> tuple[str, tuple[PendingEvent, ...]]:
        """Return the health; a kind without an interpretation of it counts as healthy."""
        try:
            if not self._interpreter.enabled(gvk_of(obj), INTERPRET_HEALTH):
                return HEALTHY, ()
            healthy = await self._interpreter.interpret_health(obj)
        except InterpreterError as error:
            message = f"Interpret health of object({shown}) failed, err: {error}."
            return UNKNOWN, (PendingEvent(WARNING, "InterpretHealthFailed", message),)
        word = "healthy" if healthy else "unhealthy"
        event = PendingEvent(NORMAL, "InterpretHealthSucceed", f"Interpret health of object({shown}) as {word}.")
        return HEALTHY if healthy else UNHEALTHY, (event,)

    def emit(self, work: Obj, reflection: Reflection) -> None:
        for event in reflection.events:
            self._recorder.event(work, *event)
