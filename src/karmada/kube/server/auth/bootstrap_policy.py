"""The roles and bindings that every cluster has from its first second.

The server makes those that are missing at each start and repairs those that lost something: a role gets back rules it
should grant, a binding its subjects. What an administrator added stays; what carries the annotation autoupdate=false
is left alone. Aggregating roles come filled, and the aggregation controller keeps them so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from karmada.kube.kinds.rbac import GROUP, aggregate
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.bootstrap_rules import CLUSTER_ROLES, CONTROLLERS, NAMESPACED_ROLES
from karmada.kube.server.auth.escalation import compact, uncovered
from karmada.kube.server.auth.rbac import Rule

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
BOOTSTRAPPING = "kubernetes.io/bootstrapping"
_AGGREGATE = "rbac.authorization.k8s.io/"
_API_VERSION = f"{GROUP}/v1"
_VERBS = {
    "read": ("get", "list", "watch"),
    "write": ("create", "delete", "deletecollection", "patch", "update"),
}
_VERBS["rw"] = _VERBS["read"] + _VERBS["write"]
_EVENTS = ({"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},)


@cache
def bootstrap_objects() -> tuple[Obj, ...]:
    """Roles first, then bindings; the same objects on every call, not to be changed."""
    roles: list[Obj] = []
    bindings: list[Obj] = []
    for text, prefix, bound in ((CLUSTER_ROLES, "", False), (CONTROLLERS, "system:controller:", True)):
        for header, rules in _blocks(text):
            role, subjects = _cluster_role(header, rules, prefix)
            if bound:
                subjects = [f"sa:kube-system:{header[0]}"]
            roles.append(role)
            if subjects is not None:
                bindings.append(_binding(role, role["metadata"]["name"], subjects))
    for header, rules in _blocks(NAMESPACED_ROLES):
        role = _role("Role", header[0].partition("/")[2], rules, namespace=header[0].partition("/")[0])
        roles.append(role)
        if len(header) > 1:
            bindings.append(_binding(role, role["metadata"]["name"], list(header[2:])))
    reader = next(r for r in roles if r["metadata"]["name"] == "extension-apiserver-authentication-reader")
    users = ["user:system:kube-controller-manager", "user:system:kube-scheduler"]
    bindings.append(_binding(reader, "system::extension-apiserver-authentication-reader", users))
    return (*fill_aggregates(roles), *bindings)


# --- reading the data ---------------------------------------------------------------------------------------------


def _blocks(text: str) -> Iterator[tuple[list[str], list[Obj]]]:
    """Yield each role's header words and rules; a line that ends with a comma is continued by the next."""
    header: list[str] = []
    rules: list[Obj] = []
    for line in re.sub(r",\n +", ",", text.strip()).splitlines():
        if line.startswith(" "):
            rules += _rules(line.split())
            continue
        if header:
            yield header, rules
        header, rules = line.split(), []
    yield header, rules


def _rules(words: Sequence[str]) -> Sequence[Obj]:
    if words == ["events"]:
        return copy_json(list(_EVENTS))
    verbs = sorted({verb for word in words[0].split(",") for verb in _VERBS.get(word, (word,))})
    if len(words) == 2:
        return [{"nonResourceURLs": words[1].split(","), "verbs": verbs}]
    groups = ["" if group == "core" else group for group in words[1].split(",")]
    rule = {"apiGroups": groups, "resources": sorted(words[2].split(",")), "verbs": verbs}
    if len(words) > 3:
        rule["resourceNames"] = words[3].split(",")
    return [rule]


def _meta(name: str, namespace: str = "") -> Obj:
    meta: Obj = {
        "name": name,
        "labels": {BOOTSTRAPPING: "rbac-defaults"},
        "annotations": {AUTOUPDATE: "true"},
    }
    if namespace:
        meta["namespace"] = namespace
    return meta


def _role(kind: str, name: str, rules: list[Obj], namespace: str = "") -> Obj:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": _meta(name, namespace), "rules": rules}


def _cluster_role(header: list[str], rules: list[Obj], prefix: str) -> tuple[Obj, list[str] | None]:
    """Return the role, and the subjects of its binding (None: it has no binding)."""
    role = _role("ClusterRole", prefix + header[0], rules)
    for word in header[1:]:
        if word.startswith("+"):
            role["metadata"]["labels"][_AGGREGATE + word[1:]] = "true"
    if "<=" in header:
        label = _AGGREGATE + header[header.index("<=") + 1]
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}
    subjects = header[header.index("->") + 1 :] if "->" in header else None
    return role, subjects


def _subject(text: str) -> Obj:
    kind, _, name = text.partition(":")
    if kind == "sa":
        namespace, _, account = name.partition(":")
        return {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return {"kind": {"user": "User", "group": "Group"}[kind], "apiGroup": GROUP, "name": name}


def _binding(role: Obj, name: str, subjects: list[str]) -> Obj:
    binding: Obj = {
        "apiVersion": _API_VERSION,
        "kind": role["kind"] + "Binding",
        "metadata": _meta(name, role["metadata"].get("namespace", "")),
        "roleRef": {"apiGroup": GROUP, "kind": role["kind"], "name": role["metadata"]["name"]},
    }
    if subjects:
        binding["subjects"] = [_subject(subject) for subject in subjects]
    return binding


def fill_aggregates(objects: Iterable[Obj]) -> list[Obj]:
    """Return the objects, with the rules that view, edit and admin have from the other roles among them."""
    objects = list(objects)
    roles = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "ClusterRole"}
    for name in ("view", "edit", "admin"):  # from the inside out: edit holds view, and admin holds edit
        rules = aggregate(roles[name], roles.values())
        if rules is not None:
            roles[name] = {**roles[name], "rules": rules}
    return [roles[obj["metadata"]["name"]] if obj["kind"] == "ClusterRole" else obj for obj in objects]


# --- repairing ----------------------------------------------------------------------------------------------------


def missing_rules(existing: Obj, wanted: Obj) -> list[Rule]:
    """Return the rules of the default role that the stored one does not grant."""
    if existing.get("rules") == wanted.get("rules"):
        return []
    return compact(uncovered(existing.get("rules") or (), wanted.get("rules") or ()))


def reconcile(existing: Obj, wanted: Obj) -> Obj | None:
    """Return the stored object with what it lacks of the default; None if it is complete or may not be touched.

    A binding to another role cannot be repaired by an update: see `must_recreate`.
    """
    meta = existing["metadata"]
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    if annotations.get(AUTOUPDATE) != "true":
        return None
    changed: Obj = {}
    defaults = wanted["metadata"]
    new_labels, new_annotations = {**defaults["labels"], **labels}, {**defaults["annotations"], **annotations}
    if new_labels != labels or new_annotations != annotations:
        changed["metadata"] = {**meta, "labels": new_labels, "annotations": new_annotations}
    if "aggregationRule" in wanted:
        selectors = (existing.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        lacking = [s for s in wanted["aggregationRule"]["clusterRoleSelectors"] if s not in selectors]
        if lacking:
            changed["aggregationRule"] = {"clusterRoleSelectors": [*selectors, *lacking]}
    elif "roleRef" in wanted:
        subjects = existing.get("subjects") or []
        absent = [s for s in wanted.get("subjects") or () if not any(_same_subject(s, own) for own in subjects)]
        if absent:
            changed["subjects"] = [*subjects, *absent]
    else:
        missing = missing_rules(existing, wanted)
        if missing:
            changed["rules"] = [*(existing.get("rules") or ()), *missing]
    return copy_json({**existing, **changed}) if changed else None


def must_recreate(existing: Obj, wanted: Obj) -> bool:
    """Return whether a default binding points to another role than it should."""
    annotations = existing["metadata"].get("annotations") or {}
    return annotations.get(AUTOUPDATE) == "true" and existing.get("roleRef") != wanted.get("roleRef")


def _same_subject(left: Obj, right: Obj) -> bool:
    keys = ("kind", "name", "namespace")
    return all(left.get(key, "") == right.get(key, "") for key in keys)
