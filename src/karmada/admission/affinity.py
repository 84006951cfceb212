"""Validation of ClusterAffinity: the fields and operators its field selector may use."""

from __future__ import annotations

from karmada.kube.objects.errors import FieldError, invalid
from karmada.kube.objects.types import Obj

KEYS = ("provider", "region", "zone")
OPERATORS = ("In", "NotIn")


def check_affinity(errors: list[FieldError], path: str, affinity: Obj | None) -> None:
    selector = (affinity or {}).get("fieldSelector")
    if not selector:
        return
    wrong = _first_wrong(selector)
    if wrong:
        errors.append(invalid(f"{path}.fieldSelector", selector, wrong))


def _first_wrong(selector: Obj) -> str:
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key") or "", expression.get("operator") or ""
        if key not in KEYS:
            return f'unsupported key "{key}", must be provider, region, or zone'
        if operator not in OPERATORS:
            return f'unsupported operator "{operator}", must be In or NotIn'
    return ""
