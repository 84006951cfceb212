"""Role-based access control: may this user do that?

Permissions only add up: rules of all ClusterRoleBindings, and, inside a namespace, of its RoleBindings. Bindings are
indexed by subject, and the index follows what is written. An answer is remembered per name and groups of the user (a
decision reads nothing else of them), verb, resource and namespace, together with the names it is limited to: checks of
many objects of a kind share one entry. It holds until a binding that names the user or one of the groups is written, or
a role that it was found with: writes are numbered, and an answer that is older than the last one looks whether one of
them concerned it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.derived import NewChanges

ROLES, CLUSTER_ROLES = GroupResource(GROUP, "roles"), GroupResource(GROUP, "clusterroles")
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = GroupResource(GROUP, "rolebindings"), GroupResource(GROUP, "clusterrolebindings")
_WRITTEN = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
HEALTH_PATHS = ("/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*")

Rule = Mapping[str, Any]
_KEPT = 8192
_LONGEST_KEY = 512  # longer keys are not cached: unauthenticated callers could fill the cache with them


class AuthzAttributes(NamedTuple):
    """The action to authorize: a verb on a resource, or (with `is_resource` false) on a path."""

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


class Written(NamedTuple):
    """A role or binding that was created, changed or deleted."""

    resource: GroupResource
    namespace: str
    name: str


class RbacChanges:
    """What is written of roles and bindings, from the watch cache."""

    def __init__(self, cache: Cache) -> None:
        self._collections = [cache.collection(resource) for resource in _WRITTEN]
        self._new = [NewChanges(collection) for collection in self._collections]
        self._seen: list[int] = []

    def __call__(self) -> Sequence[Written] | None:
        """Return what was written since the last call; None when anything may have changed."""
        seen = [collection.generation for collection in self._collections]
        if seen == self._seen:
            return ()
        self._seen = seen
        taken = [new.take() for new in self._new]
        written: list[Written] = []
        for resource, changes in zip(_WRITTEN, taken, strict=True):
            if changes is None:
                return None
            written += [Written(resource, change.entry.namespace, change.entry.name) for change in changes]
        return written


@dataclass(slots=True)
class _Grant:
    """An answer for every name: those that are named in rules, and all the others."""

    by_name: Mapping[str, Decision] | None
    otherwise: Decision
    roles: Sequence[tuple[str, str]]
    """Keys of the roles that it was found with."""
    since: int
    """It holds since then, until bindings of the user or these roles are written."""


class UserRules(NamedTuple):
    """All rules that apply to a user, and what went wrong while they were gathered."""

    rules: list[Rule]
    errors: list[str]


_PRIVILEGED = Decision(True)


# --- matching of a rule -------------------------------------------------------------------------------------------


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    return values is not None and (wanted in values or "*" in values)


def resource_rule_matches(rule: Rule, verb: str, group: str, resource: str, subresource: str) -> bool:
    """Return whether the rule covers this verb on this resource, leaving resourceNames aside."""
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


def _keys_of(user: User) -> Iterator[str]:
    """Index keys of the bindings that name the user."""
    yield "u:" + user.name
    for group in user.groups:
        yield "g:" + group


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
    """Return how a binding gives its role to the user, for the reason of a decision."""
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


def _role_key(namespace: str, name: str) -> tuple[str, str]:
    """Return the key of a role among what was written; `namespace` is "" for a ClusterRole."""
    return namespace, "r:" + name


def _role_of(binding: Obj) -> tuple[str, str]:
    """Return the key of the role that a binding refers to."""
    ref = binding.get("roleRef") or {}
    namespace = binding["metadata"].get("namespace", "") if ref.get("kind") == "Role" else ""
    return _role_key(namespace, ref.get("name", ""))


class _Index:
    """All bindings by namespace ("" for cluster bindings) and subject."""

    def __init__(self, bindings: Iterable[Obj] = ()) -> None:
        self._known: dict[tuple[str, str], Obj] = {}
        self._by_subject: dict[tuple[str, str], dict[str, Obj]] = {}
        for binding in bindings:
            self.put(*_key(binding), binding)

    def put(self, namespace: str, name: str, binding: Obj | None) -> set[str]:
        """Replace a binding, or with None remove it; return the index keys of those that were or are its subjects."""
        before = self._known.pop((namespace, name), None)
        former = set() if before is None else _subject_keys(before)
        for subject in former:
            bindings = self._by_subject[(namespace, subject)]
            del bindings[name]
            if not bindings:
                del self._by_subject[(namespace, subject)]
        if binding is None:
            return former
        self._known[(namespace, name)] = binding
        subjects = _subject_keys(binding)
        for subject in subjects:
            self._by_subject.setdefault((namespace, subject), {})[name] = binding
        return former | subjects

    def bindings(self, user: User, namespace: str) -> list[Obj]:
        """Return the user's bindings in order of their names."""
        found: dict[str, Obj] = {}
        for subject in _keys_of(user):
            found.update(self._by_subject.get((namespace, subject), ()))
        return [found[name] for name in sorted(found)]


# --- the authorizer -----------------------------------------------------------------------------------------------


class Authorizer:
    """`changes` returns what was written of roles and bindings since its last call, or None for all of them."""

    def __init__(
        self,
        reader: Reader,
        changes: Callable[[], Sequence[Written] | None],
        *,
        open_paths: Iterable[str] = HEALTH_PATHS,
    ) -> None:
        self._reader = reader
        self._changes = changes
        self._index = _Index()
        self._complete = False
        """True if the index has all that was written; not after a failure to read it."""
        self._grants: Memo[tuple[Any, ...], _Grant] = Memo(_KEPT)
        self._now = 0
        """How often something was written, as far as it was looked at."""
        self._written: dict[tuple[str, str], int] = {}
        """When the subjects of a namespace, or a role, were last written: in what bindings, or rules, say of them."""
        self._open_paths = tuple(open_paths)

    def authorize(self, user: User, request: AuthzAttributes) -> Decision:
        groups = user.groups
        if MASTERS in groups:
            return _PRIVILEGED
        changes = self._changes()
        if changes is None or changes or not self._complete:
            self._follow(changes)
        if not request.is_resource:
            return self._authorize_path(user, request.verb, request.path)
        verb, group, _, resource, subresource, namespace, name, _, _ = request
        key = (user.name, groups, verb, group, resource, subresource, namespace)
        grant = self._grants.get(key)
        if grant is None or (grant.since != self._now and self._is_void(grant, user, namespace)):
            grant = self._resource_grant(user, request)
            if len(group) + len(resource) + len(subresource) + len(namespace) < _LONGEST_KEY:
                self._grants.put(key, grant)
        return grant.otherwise if grant.by_name is None else grant.by_name.get(name, grant.otherwise)

    async def decide(self, user: User, request: AuthzAttributes) -> Decision:
        return self.authorize(user, request)

    def rules_for(self, user: User, namespace: str = "") -> UserRules:
        """Return every rule the user has in the namespace; with "" only those that hold everywhere."""
        self._follow(self._changes())
        gathered = UserRules([], [])
        for _, rules, error in self._visit(user, namespace):
            gathered.rules.extend(rules)
            if error:
                gathered.errors.append(error)
        return gathered

    def role_rules(self, role_ref: Mapping[str, Any], namespace: str) -> list[Rule] | None:
        """Return the rules of a binding's role; None if it does not exist."""
        if role_ref.get("kind") == "Role":
            role = self._reader.get(ROLES, namespace, role_ref.get("name", ""))
        else:
            role = self._reader.get(CLUSTER_ROLES, "", role_ref.get("name", ""))
        return None if role is None else role.get("rules") or []

    def _follow(self, changes: Sequence[Written] | None) -> None:
        complete, self._complete = self._complete, False
        if changes is None or not complete:
            bindings = (self._reader.list(resource) for resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS))
            self._index = _Index(chain.from_iterable(bindings))
            self._forget()
        else:
            for one in changes:
                self._take(one)
        self._complete = True

    def _take(self, one: Written) -> None:
        resource, namespace, name = one
        self._now += 1
        if resource in (ROLES, CLUSTER_ROLES):
            self._written[_role_key(namespace, name)] = self._now
        else:
            for subject in self._index.put(namespace, name, self._reader.get(resource, namespace, name)):
                self._written[(namespace, subject)] = self._now
        if len(self._written) > _KEPT:
            self._forget()

    def _forget(self) -> None:
        """Forget all answers, and with them what they would have to be compared with."""
        self._grants.clear()
        self._written.clear()

    def _is_void(self, grant: _Grant, user: User, namespace: str) -> bool:
        """Return whether a binding of the user, or a role that counted, was written since."""
        written, since = self._written, grant.since
        for subject in _keys_of(user):
            if written.get(("", subject), 0) > since or written.get((namespace, subject), 0) > since:
                return True
        if any(written.get(role, 0) > since for role in grant.roles):
            return True
        grant.since = self._now
        return False

    def _visit(self, user: User, namespace: str) -> Iterator[tuple[Obj, list[Rule], str]]:
        """Yield each binding of the user with its role's rules, or with what is wrong."""
        bindings = self._index.bindings(user, "")
        if namespace:
            bindings += self._index.bindings(user, namespace)
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
        roles: list[tuple[str, str]] = []
        for binding, rules, error in self._visit(user, namespace):
            roles.append(_role_of(binding))
            if error:
                errors.append(error)
            for rule in rules:
                if not resource_rule_matches(rule, verb, group, resource, subresource):
                    continue
                allowed = Decision(True, f"RBAC: allowed by {_describe(binding, user)}")
                names = rule.get("resourceNames")
                if not names:
                    return _Grant(by_name or None, allowed, roles, self._now)
                for name in names:
                    by_name.setdefault(name, allowed)
        return _Grant(by_name or None, _denied(errors), roles, self._now)

    def _authorize_path(self, user: User, verb: str, path: str) -> Decision:
        key = (user.name, user.groups, verb, path)
        grant = self._grants.get(key)
        if grant is None or (grant.since != self._now and self._is_void(grant, user, "")):
            grant = self._path_grant(user, verb, path)
            if len(path) < _LONGEST_KEY:
                self._grants.put(key, grant)
        return grant.otherwise

    def _path_grant(self, user: User, verb: str, path: str) -> _Grant:
        roles: list[tuple[str, str]] = []
        if verb == "get" and any(url_matches(pattern, path) for pattern in self._open_paths):
            return _Grant(None, _PRIVILEGED, roles, self._now)
        errors: list[str] = []
        for binding, rules, error in self._visit(user, ""):
            roles.append(_role_of(binding))
            if error:
                errors.append(error)
            if any(url_rule_matches(rule, verb, path) for rule in rules):
                decision = Decision(True, f"RBAC: allowed by {_describe(binding, user)}")
                return _Grant(None, decision, roles, self._now)
        return _Grant(None, _denied(errors), roles, self._now)


def _denied(errors: list[str]) -> Decision:
    return Decision(False, f"RBAC: {aggregate(errors)}" if errors else "")
