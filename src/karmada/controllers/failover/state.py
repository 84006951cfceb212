"""State preservation: what a workload takes along when it moves, read from the status that its cluster reported.

The rules of the policy are JSONPath templates, evaluated against the status; the results become labels of the copy in
the next cluster.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.go_json import compact_json
from karmada.kube.objects.go_values import go_scalar
from karmada.kube.objects.jsonpath import JSONPathError
from karmada.kube.objects.jsonpath_template import parse
from karmada.kube.objects.types import Obj


def preserved_state(binding: Obj, cluster: str, rules: list[Obj]) -> dict[str, str]:
    """Return the labels of every rule; ApiError when the status is not there yet, or a rule does not match it."""
    items = (binding.get("status") or {}).get("aggregatedStatus") or ()
    status = next((item.get("status") for item in items if item["clusterName"] == cluster), None)
    if status is None:
        raise ApiError(f"the application status has not yet been collected from Cluster({cluster})")
    return {rule["aliasLabelName"]: _text(rule["jsonPath"], status) for rule in rules}


def _text(path: str, status: Obj) -> str:
    try:
        return parse(path).render(status, allow_missing=False, text=_value_text)
    except JSONPathError as error:
        raise ApiError(f"failed to evaluate the state preservation rule {path}: {error}") from error


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return compact_json(value)
    return go_scalar(value if isinstance(value, bool) else float(value))


def rules_of(failover: Obj | None) -> list[Obj]:
    """Return the rules of the application or the cluster part of a policy's failover."""
    return ((failover or {}).get("statePreservation") or {}).get("rules") or []
