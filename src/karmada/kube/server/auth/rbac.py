"""Role-based access control: may this user do that?

Permissions only add up: rules of all ClusterRoleBindings, and, inside a namespace, of its RoleBindings. Bindings are
indexed by subject; when the RBAC version number changes, the index is brought up to date with those bindings that were
replaced (found by identity), and remembered answers are forgotten. An answer is remembered per user, verb, resource
and namespace, together with the names it is limited to: checks of many objects of a kind share one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from karmada.kube.kinds.rbac import GROUP
from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.quoting import go_quote
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.messages import aggregate
from karmada.kube.server.auth.service_accounts import username
from karmada.kube.server.auth.user import MASTERS, User

ROLES, CLUSTER_ROLES = GroupResource(GROUP, "roles"), GroupResource(GROUP, "clusterroles")
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = GroupResource(GROUP, "rolebindings"), GroupResource(GROUP, "clusterrolebindings")
HEALTH_PATHS = ("/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*")

Rule = Mapping[str, Any]
_KEPT = 8192
_LONGEST_KEY = 512  # longer keys are not cached: unauthenticated callers could fill the cache with them


class AuthzAttributes(NamedTuple):
    """What is requested: a verb on a resource, or (with `is_resource` false) on a path."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    is_resource: bool = True


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


class _Grant(NamedTuple):
    """An answer for every name: those that are named in rules, and all the others."""

    by_name: Mapping[str, Decision] | None
    otherwise: Decision


class UserRules(NamedTuple):
    """All rules that apply to a user, and what went wrong while they were gathered."""

    rules: list[Rule]
    errors: list[str]


_PRIVILEGED = Decision(True)


# --- matching of a rule -------------------------------------------------------------------------------------------


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    return values is not None and (wanted in values or "*" in values)


def resource_rule_matches(rule: Rule, verb: str, group: str, resource: str, subresource: str) -> bool:
    """Whether the rule covers this verb on this resource, leaving resourceNames aside."""
    resources = rule.get("resources")
    if not resources or not _has(rule.get("verbs"), verb) or not _has(rule.get("apiGroups"), group):
        return False
    if not subresource:
        return _has(resources, resource)
    return _has(resources, f"{resource}/{subresource}") or f"*/{subresource}" in resources


def url_matches(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def url_rule_matches(rule: Rule, verb: str, path: str) -> bool:
    urls = rule.get("nonResourceURLs")
    return bool(urls) and _has(rule.get("verbs"), verb) and any(url_matches(url, path) for url in urls or ())


# --- bindings -----------------------------------------------------------------------------------------------------


def _subject_keys(binding: Obj) -> set[str]:
    """Index keys of a binding: `u:` and a user name or `g:` and a group."""
    keys = set()
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User":
            keys.add("u:" + name)
        elif kind == "Group":
            keys.add("g:" + name)
        elif kind == "ServiceAccount":
            namespace = subject.get("namespace") or binding["metadata"].get("namespace")
            if namespace:
                keys.add("u:" + username(namespace, name))
    return keys


def _matching_subject(binding: Obj, user: User) -> Obj | None:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User" and name == user.name:
            return dict(subject)
        if kind == "Group" and name in user.groups:
            return dict(subject)
        if kind == "ServiceAccount":
            namespace = subject.get("namespace") or binding["metadata"].get("namespace")
            if namespace and username(namespace, name) == user.name:
                return dict(subject)
    return None


def _describe(binding: Obj, user: User) -> str:
    """How a binding gives its role to the user, for the reason of a decision."""
    meta, ref, subject = binding["metadata"], binding["roleRef"], _matching_subject(binding, user) or {}
    namespace = meta.get("namespace", "")
    kind, name = ("RoleBinding", f"{meta['name']}/{namespace}") if namespace else ("ClusterRoleBinding", meta["name"])
    who = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    role = f"{ref.get('kind', '')} {go_quote(ref.get('name', ''))}"
    return f"{kind} {go_quote(name)} of {role} to {subject.get('kind', '')} {go_quote(who)}"


def _key(binding: Obj) -> tuple[str, str]:
    meta = binding["metadata"]
    return meta.get("namespace", ""), meta["name"]


class _Index:
    """One collection of bindings by namespace ("" for cluster bindings) and subject."""

    def __init__(self, resource: GroupResource) -> None:
        self._resource = resource
        self._known: dict[int, Obj] = {}
        self._by_subject: dict[tuple[str, str], dict[str, Obj]] = {}

    def refresh(self, reader: Reader) -> None:
        """Objects are never changed in place, so an object that is known needs no second look."""
        current = {id(binding): binding for binding in reader.list(self._resource)}
        known = self._known
        for gone in known.keys() - current.keys():
            self._remove(known[gone])
        for new in current.keys() - known.keys():
            self._add(current[new])
        self._known = current

    def _remove(self, binding: Obj) -> None:
        namespace, name = _key(binding)
        for subject in _subject_keys(binding):
            bindings = self._by_subject[(namespace, subject)]
            del bindings[name]
            if not bindings:
                del self._by_subject[(namespace, subject)]

    def _add(self, binding: Obj) -> None:
        namespace, name = _key(binding)
        for subject in _subject_keys(binding):
            self._by_subject.setdefault((namespace, subject), {})[name] = binding

    def bindings(self, user: User, namespace: str) -> list[Obj]:
        """The user's bindings in order of their names."""
        found: dict[str, Obj] = dict(self._by_subject.get((namespace, "u:" + user.name), ()))
        for group in user.groups:
            found.update(self._by_subject.get((namespace, "g:" + group), ()))
        return [found[name] for name in sorted(found)]


# --- the authorizer -----------------------------------------------------------------------------------------------


class Authorizer:
    """`version` gives a number that changes whenever any role or binding was written."""

    def __init__(self, reader: Reader, version: Callable[[], int], *, open_paths: Iterable[str] = HEALTH_PATHS) -> None:
        self._reader = reader
        self._version = version
        self._seen: int | None = None
        self._cluster = _Index(CLUSTER_ROLE_BINDINGS)
        self._namespaced = _Index(ROLE_BINDINGS)
        self._grants: Memo[tuple[Any, ...], _Grant] = Memo(_KEPT)
        self._open_paths = tuple(open_paths)

    def authorize(self, user: User, request: AuthzAttributes) -> Decision:
        groups = user.groups
        if MASTERS in groups:
            return _PRIVILEGED
        if self._version() != self._seen:
            self._refresh()
        if not request.is_resource:
            return self._authorize_path(user, request.verb, request.path)
        verb, group, _, resource, subresource, namespace, name, _, _ = request
        key = (user.name, groups, verb, group, resource, subresource, namespace)
        grant = self._grants.get(key)
        if grant is None:
            grant = self._resource_grant(user, request)
            if len(group) + len(resource) + len(subresource) + len(namespace) < _LONGEST_KEY:
                self._grants.put(key, grant)
        by_name, otherwise = grant
        return otherwise if by_name is None else by_name.get(name, otherwise)

    async def decide(self, user: User, request: AuthzAttributes) -> Decision:
        return self.authorize(user, request)

    def rules_for(self, user: User, namespace: str = "") -> UserRules:
        """Every rule the user has in the namespace; with "" only those that hold everywhere."""
        self._refresh_if_changed()
        gathered = UserRules([], [])
        for _, rules, error in self._visit(user, namespace):
            gathered.rules.extend(rules)
            if error:
                gathered.errors.append(error)
        return gathered

    def role_rules(self, role_ref: Mapping[str, Any], namespace: str) -> list[Rule] | None:
        """The rules of a binding's role; None if it does not exist."""
        if role_ref.get("kind") == "Role":
            role = self._reader.get(ROLES, namespace, role_ref.get("name", ""))
        else:
            role = self._reader.get(CLUSTER_ROLES, "", role_ref.get("name", ""))
        return None if role is None else role.get("rules") or []

    def _refresh_if_changed(self) -> None:
        if self._version() != self._seen:
            self._refresh()

    def _refresh(self) -> None:
        version = self._version()
        self._cluster.refresh(self._reader)
        self._namespaced.refresh(self._reader)
        self._grants.clear()
        self._seen = version

    def _visit(self, user: User, namespace: str) -> Iterator[tuple[Obj, list[Rule], str]]:
        """Each binding of the user with its role's rules, or with what is wrong."""
        bindings = self._cluster.bindings(user, "")
        if namespace:
            bindings += self._namespaced.bindings(user, namespace)
        for binding in bindings:
            ref = binding.get("roleRef") or {}
            if ref.get("kind") not in ("Role", "ClusterRole"):
                yield binding, [], f"unsupported role reference kind: {go_quote(ref.get('kind', ''))}"
                continue
            rules = self.role_rules(ref, binding["metadata"].get("namespace", ""))
            if rules is None:
                yield binding, [], f"{ref['kind'].lower()}.{GROUP} {go_quote(ref.get('name', ''))} not found"
            else:
                yield binding, rules, ""

    def _resource_grant(self, user: User, request: AuthzAttributes) -> _Grant:
        """Goes through the rules in order; a name gets the first rule that covers it."""
        verb, group, _, resource, subresource, namespace, *_ = request
        by_name: dict[str, Decision] = {}
        errors: list[str] = []
        for binding, rules, error in self._visit(user, namespace):
            if error:
                errors.append(error)
            for rule in rules:
                if not resource_rule_matches(rule, verb, group, resource, subresource):
                    continue
                allowed = Decision(True, f"RBAC: allowed by {_describe(binding, user)}")
                names = rule.get("resourceNames")
                if not names:
                    return _Grant(by_name or None, allowed)
                for name in names:
                    by_name.setdefault(name, allowed)
        return _Grant(by_name or None, _denied(errors))

    def _authorize_path(self, user: User, verb: str, path: str) -> Decision:
        key = (user.name, user.groups, verb, path)
        grant = self._grants.get(key)
        if grant is None:
            grant = _Grant(None, self._path_decision(user, verb, path))
            if len(path) < _LONGEST_KEY:
                self._grants.put(key, grant)
        return grant.otherwise

    def _path_decision(self, user: User, verb: str, path: str) -> Decision:
        if verb == "get" and any(url_matches(pattern, path) for pattern in self._open_paths):
            return _PRIVILEGED
        errors: list[str] = []
        for binding, rules, error in self._visit(user, ""):
            if error:
                errors.append(error)
            if any(url_rule_matches(rule, verb, path) for rule in rules):
                return Decision(True, f"RBAC: allowed by {_describe(binding, user)}")
        return _denied(errors)


def _denied(errors: list[str]) -> Decision:
    return Decision(False, f"RBAC: {aggregate(errors)}" if errors else "")
