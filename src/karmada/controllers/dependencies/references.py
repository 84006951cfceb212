"""The dependencies of a template: references by name or by labels, recorded on its binding and indexed.

They are recorded as JSON in an annotation of the binding. An index over it finds the bindings to reconcile when
an object changes; a reference by labels is indexed under its kind and namespace only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from karmada.api import well_known
from karmada.controllers.templates import Ref
from karmada.kube.objects import meta
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status

DEPENDENCIES: Final = "dependencies"
"""An index of bindings: by what they depend on (`indexed_under`), and by what depends on them (`attached_to`)."""
_ANY: Final = ""


# the annotation


def annotation_of(dependencies: Sequence[Obj]) -> str:
    """Return the value of the annotation."""
    return orjson.dumps([_ordered(dependency) for dependency in dependencies]).decode()


def _ordered(dependency: Obj) -> Obj:
    found = {"apiVersion": dependency.get("apiVersion") or "", "kind": dependency.get("kind") or ""}
    found.update((field, dependency[field]) for field in ("namespace", "name") if dependency.get(field))
    selector = dependency.get("labelSelector")
    if selector is not None:
        found["labelSelector"] = _ordered_selector(selector)
    return found


def _ordered_selector(selector: Obj) -> Obj:
    found: Obj = {}
    if selector.get("matchLabels"):
        found["matchLabels"] = dict(sorted(selector["matchLabels"].items()))
    if selector.get("matchExpressions"):
        found["matchExpressions"] = [
            {field: expression[field] for field in ("key", "operator", "values") if expression.get(field)}
            for expression in selector["matchExpressions"]
        ]
    return found


@lru_cache(maxsize=4096)
def _read(note: str) -> tuple[Obj, ...]:
    try:
        found = orjson.loads(note)
    except orjson.JSONDecodeError:
        return ()
    return tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()


def recorded_on(binding: Obj) -> tuple[Obj, ...]:
    """Return the dependencies recorded on a binding; none when the annotation cannot be read."""
    note = meta.annotations(binding).get(well_known.DEPENDENCIES)
    return _read(note) if note else ()


# looking up


@ignores_status
def dependency_index(binding: Obj) -> Iterable[str]:
    metadata = binding["metadata"]
    namespace, annotations = metadata.get("namespace", ""), metadata.get("annotations") or {}
    attached = [
        _attached(namespace, label, value)
        for label, value in (metadata.get("labels") or {}).items()
        if label.startswith(well_known.DEPENDED_BY_PREFIX)
    ]
    if well_known.DEPENDENCIES not in annotations:
        return attached
    return attached + [
        _indexed(
            dependency.get("apiVersion") or "",
            dependency.get("kind") or "",
            dependency.get("namespace") or "",
            dependency.get("name") or _ANY,
        )
        for dependency in recorded_on(binding)
    ]


def label_of(dependent: Obj) -> dict[str, str]:
    """Return the label by which a dependent binding marks its attached bindings."""
    return {
        well_known.depended_by_label(*meta.key(dependent)): meta.labels(dependent).get(well_known.BINDING_ID, ""),
    }


def attached_to(dependent: Obj) -> str:
    """Return the index value of the bindings attached to this one."""
    ((label, value),) = label_of(dependent).items()
    return _attached(meta.namespace(dependent), label, value)


def _attached(namespace: str, label: str, value: str) -> str:
    return f"attached|{namespace}|{label}|{value}"


def indexed_under(ref: Ref) -> tuple[str, str]:
    """Return the index values of an object's dependents: those by name, and those by labels."""
    where = (ref.gvk.api_version, ref.gvk.kind, ref.namespace)
    return _indexed(*where, ref.name), _indexed(*where, _ANY)


def _indexed(api_version: str, kind: str, namespace: str, name: str) -> str:
    return f"{api_version}|{kind}|{namespace}|{name}"


def refers_to(dependency: Obj, ref: Ref, labels: Mapping[str, str] | None) -> bool:
    """Return whether a dependency names or selects the object; `labels` are None when the object does not exist."""
    if (dependency.get("apiVersion"), dependency.get("kind")) != (ref.gvk.api_version, ref.gvk.kind):
        return False
    if (dependency.get("namespace") or "") != ref.namespace:
        return False
    if dependency.get("name"):
        return bool(dependency["name"] == ref.name)
    return labels is not None and selected(dependency.get("labelSelector"), labels)


def selected(selector: Obj | None, labels: Mapping[str, str]) -> bool:
    """Return the selector; one that cannot be read selects nothing."""
    try:
        return labels_from(selector).matches(dict(labels))
    except ValueError:
        return False


# messages


def shown(dependencies: Sequence[Obj]) -> str:
    """As events show them."""
    return "[" + " ".join(_shown(dependency) for dependency in dependencies) + "]"


def _shown(dependency: Obj) -> str:
    fields = {
        "APIVersion": dependency.get("apiVersion") or "",
        "Kind": dependency.get("kind") or "",
        "Namespace": dependency.get("namespace") or "",
        "Name": dependency.get("name") or "",
        "LabelSelector": _shown_selector(dependency.get("labelSelector")),
    }
    return "{" + " ".join(f"{name}:{value}" for name, value in fields.items()) + "}"


def _shown_selector(selector: Obj | None) -> str:
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(f"{_shown_expression(each)}," for each in selector.get("matchExpressions") or ())
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _shown_expression(expression: Mapping[str, Any]) -> str:
    values = " ".join(expression.get("values") or ())
    return (
        f"LabelSelectorRequirement{{Key:{expression.get('key', '')},"
        f"Operator:{expression.get('operator', '')},Values:[{values}],}}"
    )
