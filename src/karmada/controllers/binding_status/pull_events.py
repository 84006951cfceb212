"""Events on templates about clusters in mode Pull: their agents have no rights in the namespaces of templates.

An agent reports in its Work whether the manifest is applied, and why not. When the summary of a binding says something
else of such a cluster than before, the template gets the event that the execution controller emits in mode Push.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karmada.controllers.cluster_state import is_pull
from karmada.controllers.execution.events import emit_applied, emit_not_applied
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import EventRecorder
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key


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
            if item.get("applied"):
                emit_applied(self._recorder, template, name)
            else:
                emit_not_applied(self._recorder, template, name, item["appliedMessage"])


def _changed(before: Sequence[Obj], items: Sequence[Obj]) -> Iterator[Obj]:
    """Yield the items that say something else than before about whether the manifest is applied."""
    known = {item["clusterName"]: _said(item) for item in before}
    return (item for item in items if any(_said(item)) and _said(item) != known.get(item["clusterName"]))


def _said(item: Obj) -> tuple[bool, str]:
    return bool(item.get("applied")), item.get("appliedMessage") or ""
