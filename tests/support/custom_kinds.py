"""CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from tests.support.objects import kube_object

ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(
    name: str = "v1", schema: Obj | None = None, *, served: bool = True, storage: bool = True, **more: Any
) -> Obj:
    """Without a schema, objects may be anything."""
    shape = {"openAPIV3Schema": ANYTHING if schema is None else schema}
    return {"name": name, "served": served, "storage": storage, "schema": shape, **more}


def definition(
    group: str,
    kind: str,
    *versions: Obj,
    plural: str = "",
    scope: str = "Namespaced",
    spec: Obj | None = None,
    **names: Any,
) -> Obj:
    """Without versions, there is a v1 whose objects may be anything."""
    plural = plural or f"{kind.lower()}s"
    return kube_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}") | {
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions) or [version()],
            **(spec or {}),
        },
    }
