"""Unified auth: subjects that may use a cluster's proxy may be impersonated in that cluster.

The proxy reaches a cluster as one ServiceAccount and impersonates the caller. For that the account needs the right to
impersonate exactly those who are granted the proxy in the control plane. Two Works per cluster carry that right: a
ClusterRole with their names, and the ClusterRoleBinding for the account.

A cluster that was registered without an impersonator gets one once it is Ready, if its credentials allow that.

The grants are computed once for every change of roles or bindings, through indexes that hold only the roles that grant
the proxy; only clusters whose subjects changed are reconciled then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.controllers.cluster_state import cluster_of_execution_namespace
from karmada.controllers.context import Context
from karmada.controllers.works import Works
from karmada.joining.impersonator import provide_impersonator
from karmada.joining.join import JoinError
from karmada.kube.objects import meta, rbac
from karmada.kube.objects.errors import ApiError, Forbidden
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.members.access import NoAccess

CONTROLLER: Final = "unified-auth-controller"
IMPERSONATOR: Final = "karmada-impersonator"
_LABELS: Final = {well_known.SYSTEM: well_known.TRUE}
_ALL: Final = "*"
_GRANTING, _BY_ROLE = "grants-proxy", "cluster-role"
_KINDS: Final = (("User", "users"), ("ServiceAccount", "serviceaccounts"), ("Group", "groups"))
_ROLES_AND_BINDINGS: Final = Key("roles and bindings", "")
"""The key, of no cluster, whose reconcile computes the grants."""


# rules


def proxied_clusters(role: Obj) -> frozenset[str]:
    """Return the clusters whose proxy a ClusterRole grants; {"*"} for all of them."""
    names: set[str] = set()
    for rule in role.get("rules") or ():
        if _covers(rule, "search.karmada.io", "proxying/proxy"):
            return frozenset({_ALL})
        if _covers(rule, Cluster.gvk.group, "clusters/proxy"):
            if not rule.get("resourceNames"):
                return frozenset({_ALL})
            names.update(rule["resourceNames"])
    return frozenset(names)


def _covers(rule: Obj, group: str, resource: str) -> bool:
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    return (group in groups or _ALL in groups) and (resource in resources or _ALL in resources)


class Subject(NamedTuple):
    kind: str
    name: str


class Grants(NamedTuple):
    """The subjects that may use the proxy of every cluster, and those of single clusters."""

    everywhere: frozenset[Subject]
    somewhere: Mapping[str, frozenset[Subject]]

    def of(self, cluster: str) -> frozenset[Subject]:
        return self.everywhere | self.somewhere.get(cluster, frozenset())


def impersonation_rules(subjects: Iterable[Subject]) -> list[Obj] | None:
    """At most one rule for each sort of subject; None when there is no subject."""
    rules = []
    named = list(subjects)
    for kind, resource in _KINDS:
        names = sorted({subject.name for subject in named if subject.kind == kind})
        if names:
            rule = {"verbs": ["impersonate"], "apiGroups": [""], "resources": [resource], "resourceNames": names}
            rules.append(rule)
    return rules or None


def _grants_index(role: Obj) -> Iterable[str]:
    return (_GRANTING,) if proxied_clusters(role) else ()


def _role_index(binding: Obj) -> Iterable[str]:
    ref = binding.get("roleRef") or {}
    return (ref["name"],) if ref.get("kind") == "ClusterRole" else ()


# the controller


class UnifiedAuth(Reconciler):
    name = CONTROLLER

    def __init__(self, context: Context) -> None:
        informers = context.informers
        self.workers = context.settings.concurrent_cluster_syncs
        self._events = context.recorder(CONTROLLER)
        self._works = Works(context)
        self._client, self._clock = context.client, context.clock
        self._members = context.members
        self._clusters = informers.of(Cluster.gvr)
        self._namespaces = informers.of(NAMESPACES)
        self._roles = informers.of(CLUSTER_ROLES, indexes={_GRANTING: _grants_index})
        self._bindings = informers.of(CLUSTER_ROLE_BINDINGS, indexes={_BY_ROLE: _role_index})
        self._grants: Grants | None = None
        self._add: Callable[[Key], None] = lambda _key: None
        self.watches = (
            Watch(Cluster.gvr, changed=("metadata.deletionTimestamp", "spec.impersonatorSecretRef")),
            Watch(Cluster.gvr, on=("MODIFIED",), when=_became_ready),
            Watch(NAMESPACES, on=("ADDED",), map_to=cluster_of_execution_namespace),
            Watch(CLUSTER_ROLES, having=(_grants_index, _GRANTING), changed=("rules",), map_to=_all_grants),
            Watch(CLUSTER_ROLE_BINDINGS, changed=("subjects", "roleRef"), when=self._may_grant, map_to=_all_grants),
        )

    def attach(self, add: Callable[[Key], None]) -> None:
        self._add = add

    def _may_grant(self, old: Obj | None, new: Obj | None) -> bool:
        """Return whether the role grants the proxy; for a missing role, its creation triggers the reconcile."""
        names = {name for binding in (old, new) if binding is not None for name in _role_index(binding)}
        roles = [self._roles.get(Key("", name)) for name in names]
        return any(role is not None and proxied_clusters(role) for role in roles)

    async def reconcile(self, key: Key) -> Result:
        if key == _ROLES_AND_BINDINGS:
            self._compute_grants()
            return Done
        cluster = self._clusters.get(key)
        if cluster is None or meta.is_deleting(cluster):
            return Done
        if not cluster["spec"].get("impersonatorSecretRef"):
            await self._provide_impersonator(cluster)
            return Done  # the change of the Cluster triggers the next reconcile
        if self._namespaces.get(Key("", well_known.execution_namespace(key.name))) is None:
            return Done  # its creation triggers the next reconcile
        try:
            written = await self._sync(cluster)
        except ApiError as error:
            self._events.event(cluster, WARNING, "SyncImpersonationConfigFailed", error.message)
            raise
        if written:
            self._events.event(cluster, NORMAL, "SyncImpersonationConfigSucceed", "Sync impersonation config succeed.")
        return Done

    async def _provide_impersonator(self, cluster: Obj) -> None:
        spec, name = cluster["spec"], meta.name(cluster)
        if spec.get("syncMode") != "Push" or not spec.get("secretRef") or not _is_ready(cluster):
            return
        try:
            await provide_impersonator(self._client, self._members.get(name).client, cluster, clock=self._clock)
        except (JoinError, ApiError, NoAccess) as error:
            self._events.event(cluster, WARNING, "ProvideImpersonatorFailed", str(error))
            if not isinstance(error.__cause__ or error, Forbidden):
                raise

    # grants

    def _compute_grants(self) -> None:
        before, after = self._grants, self._current_grants()
        self._grants = after
        if before is None or before == after:
            return
        for cluster in self._clusters.list():
            name = cluster["metadata"]["name"]
            if before.of(name) != after.of(name):
                self._add(Key("", name))

    def _current_grants(self) -> Grants:
        clusters: dict[str, set[Subject]] = {_ALL: set()}
        for role in self._roles.by_index(_GRANTING, _GRANTING):
            subjects = {
                Subject(subject["kind"], subject["name"])
                for binding in self._bindings.by_index(_BY_ROLE, role["metadata"]["name"])
                for subject in binding.get("subjects") or ()
            }
            for name in proxied_clusters(role) if subjects else ():
                clusters.setdefault(name, set()).update(subjects)
        everywhere = frozenset(clusters.pop(_ALL))
        return Grants(everywhere, {name: frozenset(found) for name, found in clusters.items()})

    # one cluster

    async def _sync(self, cluster: Obj) -> bool:
        """Write the two Works; return whether either changed."""
        if self._grants is None:
            self._grants = self._current_grants()
        name = cluster["metadata"]["name"]
        rules = impersonation_rules(self._grants.of(name))
        account_namespace = cluster["spec"]["impersonatorSecretRef"].get("namespace", "")
        writes = [
            await self._works.ensure(name, manifest, owner=cluster)
            for manifest in (_role(rules), _binding(account_namespace))
        ]
        return any(write.outcome != "unchanged" for write in writes)


def _is_ready(cluster: Obj) -> bool:
    ready = meta.get_condition((cluster.get("status") or {}).get("conditions"), "Ready")
    return ready is not None and ready.get("status") == "True"


def _became_ready(old: Obj | None, new: Obj | None) -> bool:
    return new is not None and _is_ready(new) and (old is None or not _is_ready(old))


def _all_grants(_obj: Obj) -> Iterable[Key]:
    return (_ROLES_AND_BINDINGS,)


def _role(rules: list[Obj] | None) -> Obj:
    return rbac.role(IMPERSONATOR, rules, labels=_LABELS)


def _binding(account_namespace: str) -> Obj:
    return rbac.binding(IMPERSONATOR, rbac.account(account_namespace, IMPERSONATOR), labels=_LABELS)
