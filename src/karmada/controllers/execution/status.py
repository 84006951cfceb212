"""What is reported of a Work: its status, and events on it and on the templates that its manifests come from.

A `Draft` is the status as it is to be: only what differs from the stored one is written. A `Reflector` makes the item
of manifestStatuses of one object: the status that the interpreter reflects, and its health.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from karmada.api import well_known
from karmada.api.cluster_bounds import bounded_text
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import INTERPRET_HEALTH, InterpreterError
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder
from karmada.kube.runtime.keys import Key

APPLIED: Final = "Applied"
DISPATCHING: Final = "Dispatching"
LONGEST_MESSAGE: Final = 4096
"""Characters of a condition's message: it has a member's errors, and the binding has those of all clusters."""
_SUSPENDED = ("False", "SuspendDispatching", "Work dispatching is in a suspended state.")
_DISPATCHED = ("True", "Dispatching", "Work is being dispatched to member clusters.")


class Draft:
    def __init__(self, work: Obj, now: float) -> None:
        status = work.get("status") or {}
        self._now = now
        self._stored: list[Obj] = status.get("conditions") or []
        self._reported: list[Obj] = status.get("manifestStatuses") or []
        self.conditions = self._stored
        self.manifests = self._reported

    def status_of(self, kind: str) -> str:
        condition = meta.get_condition(self.conditions, kind)
        return "" if condition is None else str(condition.get("status", ""))

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        condition = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": bounded_text(message, LONGEST_MESSAGE),
        }
        self.conditions = meta.set_condition(self.conditions, condition, self._now)

    def dispatching(self, suspended: bool) -> str:
        """Set whether the Work is dispatched; returns the message if that changed, else an empty one."""
        status, reason, message = _SUSPENDED if suspended else _DISPATCHED
        if self.status_of(DISPATCHING) == status:
            return ""
        self.set(DISPATCHING, status, reason, message)
        return message

    def report(self, entry: Obj) -> bool:
        """Set the status of one manifest; whether that changed."""
        identifier = entry["identifier"]
        others = [kept for kept in self.manifests if kept["identifier"]["ordinal"] != identifier["ordinal"]]
        if len(others) + 1 == len(self.manifests) and entry in self.manifests:
            return False
        self.manifests = sorted([*others, entry], key=lambda kept: int(kept["identifier"]["ordinal"]))
        return True

    def keep(self, identifiers: Sequence[Obj]) -> None:
        """Drop reports on manifests that the Work no longer has."""
        if any(kept["identifier"] not in identifiers for kept in self.manifests):
            self.manifests = [kept for kept in self.manifests if kept["identifier"] in identifiers]

    def patch(self) -> Obj:
        """Return the fields of the status that changed."""
        changed: Obj = {}
        if self.conditions != self._stored:
            changed["conditions"] = self.conditions
        if self.manifests != self._reported:
            changed["manifestStatuses"] = self.manifests
        return changed


WORK_STATUS: Final = "work-status-controller"
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


EXECUTION: Final = "execution-controller"


def template_of(manifest: Obj) -> Obj | None:
    """Return a reference to a manifest's template for an event; None when the template is not known."""
    uid = meta.annotations(manifest).get(well_known.TEMPLATE_UID)
    name, kind = meta.name(manifest), manifest.get("kind")
    if not uid or not name or not kind:
        return None
    metadata = {"namespace": meta.namespace(manifest), "name": name, "uid": uid}
    return {"apiVersion": manifest.get("apiVersion"), "kind": kind, "metadata": metadata}


def full_name(obj: Obj) -> str:
    """namespace/name, or the name alone."""
    namespace, name = meta.key(obj)
    return f"{namespace}/{name}" if namespace else name


class ExecutionEvents:
    def __init__(self, recorder: EventRecorder, *, templates: bool = True) -> None:
        """`templates`: also on these; an agent has no rights in their namespaces."""
        self._recorder = recorder
        self._templates = templates

    def dispatching(self, work: Obj, message: str) -> None:
        self._recorder.event(work, NORMAL, "WorkDispatching", message)

    def synced(self, work: Obj, cluster: str, error: str = "") -> None:
        """Emit on a Work that all of its manifests are applied; or, with an error, that not all are."""
        if error:
            message = f"Failed to sync work({full_name(work)}) to cluster({cluster}), err: {error}"
            self._recorder.event(work, WARNING, "SyncFailed", message)
        else:
            message = f"Sync work({full_name(work)}) to cluster({cluster}) successful."
            self._recorder.event(work, NORMAL, "SyncSucceed", message)

    def applied(self, manifest: Obj, cluster: str, error: Exception | None = None) -> None:
        """Emit on the template of a manifest what `emit_applied` says."""
        template = template_of(manifest) if self._templates else None
        if template is not None:
            emit_applied(self._recorder, template, cluster, None if error is None else str(error))


def emit_applied(recorder: EventRecorder, template: Obj, cluster: str, error: str | None = None) -> None:
    """Emit on a template that it was applied in a cluster, or why it was not."""
    if error is None:
        message = f"Successfully applied resource({'/'.join(meta.key(template))}) to cluster {cluster}"
        recorder.event(template, NORMAL, "SyncSucceed", message)
    else:
        message = f"Failed to create or update resource({full_name(template)}) in member cluster({cluster}): {error}"
        recorder.event(template, WARNING, "SyncFailed", message)
