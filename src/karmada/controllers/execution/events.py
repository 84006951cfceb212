"""The events of the execution controller: on Works, and on the templates that their manifests come from."""

from __future__ import annotations

from typing import Final

from karmada.api import well_known
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING, EventRecorder

CONTROLLER: Final = "execution-controller"


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

    def synced(self, work: Obj, cluster: str) -> None:
        message = f"Sync work({full_name(work)}) to cluster({cluster}) successful."
        self._recorder.event(work, NORMAL, "SyncSucceed", message)

    def not_synced(self, work: Obj, cluster: str, error: str) -> None:
        message = f"Failed to sync work({full_name(work)}) to cluster({cluster}), err: {error}"
        self._recorder.event(work, WARNING, "SyncFailed", message)

    def applied(self, manifest: Obj, cluster: str) -> None:
        template = template_of(manifest) if self._templates else None
        if template is not None:
            emit_applied(self._recorder, template, cluster)

    def not_applied(self, manifest: Obj, cluster: str, error: Exception) -> None:
        template = template_of(manifest) if self._templates else None
        if template is not None:
            emit_not_applied(self._recorder, template, cluster, str(error))


def emit_applied(recorder: EventRecorder, template: Obj, cluster: str) -> None:
    message = f"Successfully applied resource({'/'.join(meta.key(template))}) to cluster {cluster}"
    recorder.event(template, NORMAL, "SyncSucceed", message)


def emit_not_applied(recorder: EventRecorder, template: Obj, cluster: str, error: str) -> None:
    message = f"Failed to create or update resource({full_name(template)}) in member cluster({cluster}): {error}"
    recorder.event(template, WARNING, "SyncFailed", message)
