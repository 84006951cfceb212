"""ResourceBinding and ClusterResourceBinding. Both get a permanent id; only the former is judged, quota included."""

from __future__ import annotations

from typing import Any

import orjson

from karmada.admission.binding_quota import enforce
from karmada.admission.context import Context
from karmada.api.older_forms import present_placement
from karmada.api.well_known import BINDING_ID, CLUSTER_BINDING_ID, DEPENDENCIES
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid
from karmada.kube.objects.types import Obj

COMPONENTS_GATE = "MultiplePodTemplatesScheduling"
_TEXTS = ("apiVersion", "kind", "namespace", "name")


def mutate(binding: Obj, _old: Obj | None, context: Context) -> None:
    """ResourceBinding."""
    _mutate(binding, context, BINDING_ID)


def mutate_cluster_wide(binding: Obj, _old: Obj | None, context: Context) -> None:
    """ClusterResourceBinding."""
    _mutate(binding, context, CLUSTER_BINDING_ID)


def _mutate(binding: Obj, context: Context, label: str) -> None:
    give_id(binding, label, context)
    placement = (binding.get("spec") or {}).get("placement")
    if placement:
        binding["spec"]["placement"] = present_placement(placement)


def give_id(obj: Obj, label: str, context: Context) -> None:
    """Give an object that brings none a permanent id."""
    meta = obj["metadata"]
    labels = meta.get("labels") or {}
    if not labels.get(label):
        meta["labels"] = {**labels, label: context.settings.new_id()}


async def validate(binding: Obj, old: Obj | None, context: Context) -> list[FieldError]:
    errors = [*_dependencies(binding["metadata"].get("annotations") or {}), *_own_namespace(binding)]
    if errors:
        return errors
    await enforce(binding, old, context)
    return _components(binding["spec"]) if context.settings.enabled(COMPONENTS_GATE) else []


def _own_namespace(binding: Obj) -> list[FieldError]:
    """Return what a binding in a namespace is about is in that namespace, too."""
    own = binding["metadata"].get("namespace") or ""
    given = ((binding.get("spec") or {}).get("resource") or {}).get("namespace") or ""
    if not given or given == own:
        return []
    return [invalid("spec.resource.namespace", given, f"must be the namespace of the binding ({own})")]


def _dependencies(annotations: Obj) -> list[FieldError]:
    text = annotations.get(DEPENDENCIES)
    if text is None or _lists_references(text):
        return []
    return [invalid(f"metadata.annotations.{DEPENDENCIES}", text, "annotation value must be a valid JSON")]


def _lists_references(text: str) -> bool:
    """Return whether a text reads as a list of references to objects; null is an empty list."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return found is None or (isinstance(found, list) and all(_is_reference(item) for item in found))


def _is_reference(item: Any) -> bool:
    if not isinstance(item, dict):
        return item is None
    texts = all(isinstance(item.get(key, ""), str | None) for key in _TEXTS)
    return texts and isinstance(item.get("labelSelector", {}), dict | None)


def _components(spec: Obj) -> list[FieldError]:
    errors = FieldErrors()
    seen: set[str] = set()
    for index, component in enumerate(spec.get("components") or ()):
        name, path = component.get("name") or "", f"spec.components[{index}].name"
        if not name:
            errors.append(invalid(path, name, "component names must be non-empty"))
        elif name in seen:
            errors.append(invalid(path, name, "component names must be unique"))
        seen.add(name)
    return errors
