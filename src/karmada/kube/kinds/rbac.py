"""Roles and bindings: their defaults, what they must look like, and the aggregation of ClusterRoles.

Names may be anything that fits into a path. A binding's role never changes: who may bind was decided for that one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid, not_supported, required
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj

GROUP = "rbac.authorization.k8s.io"

# --- roles --------------------------------------------------------------------------------------------------------


def _rule_errors(rule: Obj, path: str, namespaced: bool) -> list[FieldError]:
    errors = FieldErrors()
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            errors.append(invalid(where, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            errors.append(invalid(where, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def _rules_errors(role: Obj, namespaced: bool) -> list[FieldError]:
    rules = role.get("rules") or ()
    return [error for i, rule in enumerate(rules) for error in _rule_errors(rule, f"rules[{i}]", namespaced)]


def validate_role(role: Obj) -> list[FieldError]:
    return _rules_errors(role, namespaced=True)


def validate_cluster_role(role: Obj) -> list[FieldError]:
    errors = _rules_errors(role, namespaced=False)
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return errors
    path = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors")
    if not selectors:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        return [*errors, required(path, why)]
    for index, selector in enumerate(selectors):
        try:
            labels_from(selector)
        except ValueError:
            errors.append(invalid(f"{path}[{index}]", selector, "invalid label selector."))
    return errors


def aggregate(role: Obj, all_roles: Iterable[Obj]) -> list[Any] | None:
    """Return the rules an aggregating ClusterRole should have; None if it has them (or does not aggregate)."""
    aggregation = role.get("aggregationRule")
    if not aggregation:
        return None
    own = role["metadata"]["name"]
    others = sorted((r for r in all_roles if r["metadata"]["name"] != own), key=lambda r: str(r["metadata"]["name"]))
    rules: dict[bytes, Any] = {}  # by content: each once, in the order found
    for selector in aggregation.get("clusterRoleSelectors") or ():
        matching = labels_from(selector)
        for other in others:
            if matching.matches(other["metadata"].get("labels")):
                for rule in other.get("rules") or ():
                    rules.setdefault(orjson.dumps(rule, option=orjson.OPT_SORT_KEYS), rule)
    wanted = list(rules.values())
    return None if wanted == (role.get("rules") or []) else copy_json(wanted)


# --- bindings -----------------------------------------------------------------------------------------------------


def default_binding(binding: Obj) -> None:
    ref = binding.get("roleRef")
    if ref is not None and not ref.get("apiGroup"):
        ref["apiGroup"] = GROUP
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def _subject_errors(subject: Obj, path: str, namespaced: bool) -> list[FieldError]:
    errors = FieldErrors()
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            errors += [invalid(f"{path}.name", name, message) for message in names.dns1123_subdomain(name)]
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(not_supported(f"{path}.apiGroup", group, [GROUP]))
    else:
        errors.append(not_supported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"]))
    return errors


def _binding_errors(binding: Obj, kinds: list[str], namespaced: bool) -> list[FieldError]:
    errors = FieldErrors()
    ref = binding.get("roleRef") or {}
    if ref.get("apiGroup", "") != GROUP:
        errors.append(not_supported("roleRef.apiGroup", ref.get("apiGroup", ""), [GROUP]))
    if ref.get("kind") not in kinds:
        errors.append(not_supported("roleRef.kind", ref.get("kind", ""), kinds))
    name = ref.get("name", "")
    if not name:
        errors.append(required("roleRef.name"))
    else:
        errors += [invalid("roleRef.name", name, message) for message in names.path_segment(name)]
    for index, subject in enumerate(binding.get("subjects") or ()):
        errors += _subject_errors(subject, f"subjects[{index}]", namespaced)
    return errors


def validate_role_binding(binding: Obj) -> list[FieldError]:
    return _binding_errors(binding, ["Role", "ClusterRole"], namespaced=True)


def validate_cluster_role_binding(binding: Obj) -> list[FieldError]:
    return _binding_errors(binding, ["ClusterRole"], namespaced=False)


def _same_role(binding: Obj, old: Obj) -> list[FieldError]:
    if binding.get("roleRef") == old.get("roleRef"):
        return []
    return [invalid("roleRef", binding.get("roleRef"), "cannot change roleRef")]


ROLE = Strategy(validate=validate_role, name_errors=names.path_segment)
CLUSTER_ROLE = Strategy(validate=validate_cluster_role, name_errors=names.path_segment)
ROLE_BINDING = Strategy(
    default=default_binding,
    validate=validate_role_binding,
    validate_update=_same_role,
    name_errors=names.path_segment,
)
CLUSTER_ROLE_BINDING = Strategy(
    default=default_binding,
    validate=validate_cluster_role_binding,
    validate_update=_same_role,
    name_errors=names.path_segment,
)
STRATEGIES: dict[str, Strategy] = {
    "Role": ROLE,
    "ClusterRole": CLUSTER_ROLE,
    "RoleBinding": ROLE_BINDING,
    "ClusterRoleBinding": CLUSTER_ROLE_BINDING,
}
