"""Nobody grants what they do not have.

Whoever writes a role must already hold every permission in it, or be allowed to `escalate`; whoever writes a binding
must hold every permission of its role, or be allowed to `bind` it. To compare sets of rules, the granted ones are
broken into the smallest rules (one group, resource, verb and name) and each must lie within a rule of the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from karmada.kube.kinds.rbac import GROUP
from karmada.kube.objects.errors import ApiError, Forbidden, NotFound
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.quoting import go_quote, go_quote_all
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes, Plugin
from karmada.kube.server.auth.rbac import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    Authorizer,
    AuthzAttributes,
    Rule,
    url_matches,
)
from karmada.kube.server.auth.user import User

FULL_AUTHORITY: list[Rule] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_GUARDED = frozenset((ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS))
_GC_FIELDS = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")
_SHOWN = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


_MOST_COMPARISONS, _ALWAYS_COMPARED = 100_000, 500
"""Rules multiply: sixty groups, resources and verbs are 216,000 permissions to compare with each one held."""


class TooManyRules(Exception):
    """Rules that grant more single permissions than can be compared with those that somebody holds."""

    def __init__(self, combinations: int) -> None:
        super().__init__(
            f"the rules grant {combinations} combinations of group, resource, verb and name, too many to compare with "
            "the permissions held: write smaller rules, or have somebody with the verb escalate write them"
        )


# --- covering -----------------------------------------------------------------------------------------------------


def break_down(rule: Rule) -> list[Rule]:
    """Return the rule as rules that grant one thing each."""
    verbs = rule.get("verbs") or ()
    names: Sequence[str | None] = rule.get("resourceNames") or (None,)
    parts: list[Rule] = []
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                for name in names:
                    part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                    parts.append(part if name is None else {**part, "resourceNames": [name]})
    parts += [
        {"nonResourceURLs": [url], "verbs": [verb]} for url in rule.get("nonResourceURLs") or () for verb in verbs
    ]
    return parts


def _all_in(wanted: Iterable[str], held: Sequence[str]) -> bool:
    return "*" in held or all(value in held for value in wanted)


def _resource_in(resource: str, held: Sequence[str]) -> bool:
    if "*" in held or resource in held:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in held


def covers(held: Rule, part: Rule) -> bool:
    """Return whether everything that `part` grants is granted by `held`."""
    if not _all_in(part.get("verbs") or (), held.get("verbs") or ()):
        return False
    if part.get("nonResourceURLs"):
        urls = held.get("nonResourceURLs") or ()
        return all(any(url_matches(own, url) for own in urls) for url in part["nonResourceURLs"])
    if not _all_in(part.get("apiGroups") or (), held.get("apiGroups") or ()):
        return False
    if not all(_resource_in(resource, held.get("resources") or ()) for resource in part.get("resources") or ()):
        return False
    names = held.get("resourceNames")
    wanted = part.get("resourceNames")
    return not names or (bool(wanted) and all(name in names for name in wanted or ()))


def _is_mixed(rule: Rule) -> bool:
    """About resources and paths at once, which `covers` compares only part by part."""
    return bool(rule.get("nonResourceURLs") and rule.get("resources"))


def size(rule: Rule) -> int:
    """Return how many rules `break_down` makes of it."""
    verbs = len(rule.get("verbs") or ())
    resources = len(rule.get("apiGroups") or ()) * len(rule.get("resources") or ())
    return verbs * (resources * max(1, len(rule.get("resourceNames") or ())) + len(rule.get("nonResourceURLs") or ()))


def uncovered(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return the smallest rules of `wanted` that `held` does not grant; TooManyRules when there are too many."""
    own = list(held)
    doubtful = [rule for rule in wanted if _is_mixed(rule) or not any(covers(rule_, rule) for rule_ in own)]
    combinations = sum(map(size, doubtful))
    if combinations * len(own) > _MOST_COMPARISONS and combinations > _ALWAYS_COMPARED:
        raise TooManyRules(combinations)
    return [part for rule in doubtful for part in break_down(rule) if not any(covers(rule_, part) for rule_ in own)]


def compact(parts: Iterable[Rule]) -> list[Rule]:
    """Small rules for the same thing put together again, with all their verbs."""
    merged: dict[tuple[str, ...], dict[str, list[str]]] = {}
    others: list[Rule] = []
    for part in parts:
        if part.get("nonResourceURLs"):
            others.append(part)
            continue
        key = (*part["apiGroups"], *part["resources"], *(part.get("resourceNames") or ()))
        if key in merged:
            merged[key]["verbs"].extend(part["verbs"])
        else:
            merged[key] = {field: list(values) for field, values in part.items()}
    return [*others, *merged.values()]


def describe_rule(rule: Rule) -> str:
    return "{" + ", ".join(f"{label}:{go_quote_all(rule[key])}" for label, key in _SHOWN if rule.get(key)) + "}"


# --- the checks ---------------------------------------------------------------------------------------------------


def missing_permissions(authorizer: Authorizer, user: User, namespace: str, rules: Iterable[Rule]) -> str:
    """Why the user may not grant these rules; empty if they hold all of them."""
    held = authorizer.rules_for(user, namespace)
    try:
        missing = uncovered(held.rules, rules)
    except TooManyRules as error:
        return str(error)
    if not missing:
        return ""
    lines = sorted({describe_rule(rule) for rule in compact(missing)})
    message = (
        f"user {go_quote(user.name)} (groups={go_quote_all(user.groups)}) "
        "is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lines)
    )
    if held.errors:
        message += f"; resolution errors: [{' '.join(held.errors)}]"
    return message


def escalation_error(
    authorizer: Authorizer, user: User, resource: GroupResource, namespace: str, obj: Obj, old: Obj | None
) -> ApiError | None:
    """Why this user may not write this role or binding (`old` is None on create); None if they may."""
    if resource not in _GUARDED or user.is_master or (old is not None and _only_gc_fields(obj, old)):
        return None
    if resource in (ROLES, CLUSTER_ROLES):
        return _role_error(authorizer, user, resource, namespace, obj, old)
    return _binding_error(authorizer, user, resource, namespace, obj)


def _role_error(
    authorizer: Authorizer, user: User, resource: GroupResource, namespace: str, obj: Obj, old: Obj | None
) -> ApiError | None:
    name = obj["metadata"].get("name", "")
    target = "" if old is None else name
    escalate = AuthzAttributes("escalate", GROUP, "*", resource.resource, namespace=namespace, name=target)
    if authorizer.authorize(user, escalate).allowed:
        return None
    why = missing_permissions(authorizer, user, namespace, obj.get("rules") or ())
    if why:
        return Forbidden.of(resource, name, why)
    aggregates = obj.get("aggregationRule") or (old or {}).get("aggregationRule")
    if aggregates and missing_permissions(authorizer, user, namespace, FULL_AUTHORITY):
        return Forbidden.of(resource, name, "must have cluster-admin privileges to use the aggregationRule")
    return None


def _binding_error(
    authorizer: Authorizer, user: User, resource: GroupResource, namespace: str, obj: Obj
) -> ApiError | None:
    ref: Mapping[str, str] = obj.get("roleRef") or {}
    role = ROLES if ref.get("kind") == "Role" else CLUSTER_ROLES
    role_name = ref.get("name", "")
    bind = AuthzAttributes("bind", ref.get("apiGroup", ""), "*", role.resource, namespace=namespace, name=role_name)
    if authorizer.authorize(user, bind).allowed:
        return None
    rules = authorizer.role_rules(ref, namespace)
    if rules is None:
        return NotFound.of(role, role_name)
    why = missing_permissions(authorizer, user, namespace, rules)
    return Forbidden.of(resource, obj["metadata"].get("name", ""), why) if why else None


def _only_gc_fields(obj: Obj, old: Obj) -> bool:
    """Return whether the update touches nothing but what the garbage collector needs to touch."""

    def rest(o: Obj) -> Obj:
        meta = {key: value for key, value in o["metadata"].items() if key not in _GC_FIELDS}
        return {**o, "metadata": meta}

    return rest(obj) == rest(old)


class EscalationGuard(Plugin):
    """Admission plug-in: refuses roles and bindings that would grant more than their writer holds."""

    name = "RBACEscalation"

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.group_resource in _GUARDED
            and not attributes.subresource
            and attributes.operation in (CREATE, UPDATE)
        )

    async def validate(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        error = escalation_error(
            self._authorizer,
            attributes.user,
            attributes.group_resource,
            attributes.namespace,
            attributes.obj,
            attributes.old,
        )
        if error is not None:
            raise error
