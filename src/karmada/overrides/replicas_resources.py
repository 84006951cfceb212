"""Two forms of older documents: the number of replicas, and the resources of a container, set as they are."""

from __future__ import annotations

from typing import Any, Final

from karmada.kube.objects.types import Obj
from karmada.overrides.containers import CONTAINERS, Change, nested_list, replaced, unchanged
from karmada.overrides.errors import CannotApply

_REPLICAS: Final = {"Deployment": "replicas", "ReplicaSet": "replicas", "StatefulSet": "replicas", "Job": "parallelism"}
_NO_REPLICAS: Final = frozenset({"Pod", "DaemonSet", "CronJob"})
_PARTS: Final = ("limits", "requests")


def replicas_change(overriders: list[Obj]) -> Change:
    """Return the change of replicas; the last entry counts.

    A kind that is not known gets them only where it has spec.replicas already.
    """
    if not overriders:
        return unchanged
    replicas = overriders[-1].get("value")

    def change(obj: Obj) -> Obj:
        kind, spec = obj["kind"], obj.get("spec") or {}
        if not isinstance(spec, dict):
            raise CannotApply("spec is not an object")
        field = _REPLICAS.get(kind, "replicas")
        if kind in _NO_REPLICAS or (kind not in _REPLICAS and field not in spec) or spec.get(field) == replicas:
            return obj
        return {**obj, "spec": {**spec, field: replicas}}

    return change


def resources_change(overrider: Obj) -> Change:
    """Limits and requests are replaced as a whole where they are given, and stay where they are not."""
    name, value = overrider.get("containerName"), overrider.get("value") or {}
    given = {part: value[part] for part in _PARTS if value.get(part)}

    def change(obj: Obj) -> Obj:
        path = CONTAINERS.get(obj["kind"])
        containers = nested_list(obj, path) if path is not None else None
        if path is None or not containers:
            return obj
        new = [_changed(container, name, given) for container in containers]
        return obj if new == containers else replaced(obj, path, new)

    return change


def _changed(container: Any, name: Any, given: Obj) -> Any:
    if not given or not isinstance(container, dict) or container.get("name") != name:
        return container
    return {**container, "resources": {**(container.get("resources") or {}), **given}}
