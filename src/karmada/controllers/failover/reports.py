"""Events of evictions, each on the binding and on its template."""

from __future__ import annotations

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import EventRecorder


def report(recorder: EventRecorder, binding: Obj, sort: str, reason: str, message: str) -> None:
    recorder.event(binding, sort, reason, message)
    resource = binding["spec"]["resource"]
    metadata = {key: resource[key] for key in ("name", "namespace", "uid", "resourceVersion") if resource.get(key)}
    about = {"apiVersion": resource["apiVersion"], "kind": resource["kind"], "metadata": metadata}
    recorder.event(about, sort, reason, message)
