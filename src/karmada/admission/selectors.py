"""Resource selectors of namespaced policies: they select in the policy's own namespace and nowhere else."""

from __future__ import annotations

from karmada.kube.objects.errors import FieldError, invalid
from karmada.kube.objects.types import Obj

_ELSEWHERE = "namespace of resource selector must be the same as the namespace of the policy"


def fill_namespace(spec: Obj, namespace: str) -> None:
    for selector in spec.get("resourceSelectors") or ():
        if not selector.get("namespace") and namespace:
            selector["namespace"] = namespace


def check_namespace(errors: list[FieldError], spec: Obj, namespace: str) -> None:
    for index, selector in enumerate(spec.get("resourceSelectors") or ()):
        given = selector.get("namespace") or ""
        if given != namespace:
            errors.append(invalid(f"spec.resourceSelectors[{index}].namespace", given, _ELSEWHERE))
