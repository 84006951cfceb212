"""What a cluster gets of an object: ClusterOverridePolicies are applied first, then those of the object's namespace.

Of each kind, the policies that select the object are put in order (those that select it most precisely last, then by
name) and their rules for the cluster are applied one after the other, each to the result of the one before. Which rules
those are is settled before the first of them runs. The first that fails ends it: there is no half-applied result.

Policies are found by what they select (see `selected`), never by going through all of them, and each version of one is
compiled once. The object is never changed; what comes out shares with it whatever no rule touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import Cache
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of
from karmada.overrides.compiled import Policy, Rule, Step, subject_of
from karmada.overrides.errors import CannotApply, OverrideError
from karmada.overrides.identity import check_identity

SELECTED: Final = "override-selected"
"""Policies by what they select: `namespace|apiVersion|kind|name`, each part empty where it is not given."""
SELECTS_CLUSTERS: Final = "override-selects-clusters"
"""Policies with a rule that matches on more than the name of a cluster."""
YES: Final = "yes"
_RESOURCE: Final = Cluster.gvr.group_resource

_REMEMBERED: Final = 8192

Named = tuple[str, str, str, str]
"""apiVersion, kind, namespace and name of an object."""
Lookups = Callable[[Named], Iterable[str]]
"""The index values of policies that may select an object."""
Observer = Callable[[Rule, Step, Obj, Obj], None]
"""(rule, overrider, before, after): called for every overrider that was applied."""


def selected(policy: Obj) -> Iterable[str]:
    """Index values of a policy. Where a namespaced one selects is its own namespace, whatever its selectors say."""
    own = meta.namespace(policy)
    selectors = (policy.get("spec") or {}).get("resourceSelectors")
    if not selectors:
        return (f"{own}|||",)
    return {
        f"{own or selector.get('namespace') or ''}|{selector.get('apiVersion') or ''}|{selector.get('kind') or ''}|"
        f"{selector.get('name') or ''}"
        for selector in selectors
    }


def selects_clusters(policy: Obj) -> Iterable[str]:
    spec = policy.get("spec") or {}
    targets = [rule.get("targetCluster") or {} for rule in spec.get("overrideRules") or (spec,)]
    if any("labelSelector" in target or "fieldSelector" in target for target in targets):
        return (YES,)
    return ()


_INDEXES: Final = {SELECTED: selected, SELECTS_CLUSTERS: selects_clusters}


class Known(Protocol):
    """The part of an informer that is used here; a plain cache has it as well."""

    def get(self, key: Key) -> Obj | None: ...

    def by_index(self, name: str, value: str) -> list[Obj]: ...

    def __len__(self) -> int: ...


class Applied(NamedTuple):
    """An object as a cluster gets it, and the rules that made it so, in the order they were applied."""

    manifest: Obj
    cluster_policies: tuple[Rule, ...] = ()
    policies: tuple[Rule, ...] = ()


class Policies:
    """The policies of one kind, compiled as they are needed."""

    def __init__(self, known: Known, lookups: Lookups) -> None:
        self._known = known
        self._lookups = lookups
        self._compiled: dict[tuple[str, str], Policy] = {}
        self._found: Memo[Named, list[Policy]] = Memo(_REMEMBERED)

    def on_change(self, old: Obj | None, new: Obj | None) -> None:
        """Drop what was found, which may be wrong after any change; what was compiled is checked when it is used."""
        self._found.clear()
        if new is None and old is not None:
            self._compiled.pop(key_of(old), None)

    def compiled(self, policy: Obj) -> Policy:
        """Return a policy compiled, once for each version: an informer has one object for each version."""
        metadata = policy["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        found = self._compiled.get(key)
        if found is None or found.source is not policy:
            found = self._compiled[key] = Policy(policy)
        return found

    def candidates(self, named: Named) -> list[Policy]:
        """Return the policies that may select an object by all but its labels; looked up once for many clusters."""
        found = self._found.get(named)
        if found is None:
            found = self._found.put(named, self._look_up(named))
        return found

    def _look_up(self, named: Named) -> list[Policy]:
        policies = {
            id(policy): policy for value in self._lookups(named) for policy in self._known.by_index(SELECTED, value)
        }
        return [self.compiled(policy) for policy in policies.values()]

    def selecting_clusters(self) -> list[Policy]:
        return [self.compiled(policy) for policy in self._known.by_index(SELECTS_CLUSTERS, YES)]

    def rules(self, obj: Obj, cluster: Obj) -> list[Rule]:
        """Return the rules for an object in a cluster, in the order they are applied."""
        if not len(self._known):
            return []
        subject = subject_of(obj)
        candidates = self.candidates(subject[:4])
        if not candidates:
            return []
        ranked = [(rank, policy.name, policy) for policy in candidates if (rank := policy.priority(subject))]
        if len(ranked) > 1:
            ranked.sort(key=_rank)
        return [rule for _, _, policy in ranked for rule in policy.rules if rule.matches(cluster)]


def _rank(entry: tuple[int, str, Policy]) -> tuple[int, str]:
    return entry[0], entry[1]


def _cluster_wide(named: Named) -> Iterable[str]:
    api_version, kind, namespace, name = named
    what = f"|{api_version}|{kind}|"
    everywhere = ("|||", what, what + name)
    return (*everywhere, namespace + what, namespace + what + name) if namespace else everywhere


def _namespaced(named: Named) -> Iterable[str]:
    api_version, kind, namespace, name = named
    what = f"{namespace}|{api_version}|{kind}|"
    return f"{namespace}|||", what, what + name


class Overrides:
    """The override policies of a control plane."""

    def __init__(self, informers: Informers) -> None:
        """Take informers that need not have started; nothing may be applied before they have synced."""
        cluster_wide = informers.of(ClusterOverridePolicy.gvr, indexes=_INDEXES)
        namespaced = informers.of(OverridePolicy.gvr, indexes=_INDEXES)
        self._clusters: Known = informers.of(Cluster.gvr)
        self.cluster_wide = Policies(cluster_wide, _cluster_wide)
        self.namespaced = Policies(namespaced, _namespaced)
        cluster_wide.add_handler(self.cluster_wide.on_change)
        namespaced.add_handler(self.namespaced.on_change)

    @classmethod
    def of_objects(cls, objects: Iterable[Obj]) -> Overrides:
        """For given policies and clusters, without informers."""
        caches = {kind.gvk.kind: Cache(_INDEXES) for kind in (ClusterOverridePolicy, OverridePolicy)}
        caches["Cluster"] = Cache()
        for obj in objects:
            caches[obj["kind"]].set(key_of(obj), obj)
        made = cls.__new__(cls)
        made._clusters = caches["Cluster"]
        made.cluster_wide = Policies(caches[ClusterOverridePolicy.gvk.kind], _cluster_wide)
        made.namespaced = Policies(caches[OverridePolicy.gvk.kind], _namespaced)
        return made

    def cluster(self, name: str) -> Obj:
        """NotFound when there is no such cluster (or it has not been seen yet)."""
        found = self._clusters.get(Key("", name))
        if found is None:
            raise NotFound.of(_RESOURCE, name)
        return found

    def apply(self, manifest: Obj, cluster: str, observe: Observer | None = None) -> Applied:
        """Return the object as a cluster gets it; OverrideError when a rule cannot be applied."""
        target = self.cluster(cluster)
        first = self.cluster_wide.rules(manifest, target)
        result = _apply(manifest, first, cluster, (), observe) if first else manifest
        then = self.namespaced.rules(result, target) if result["metadata"].get("namespace") else []
        if then:
            result = _apply(result, then, cluster, tuple(first), observe)
        return Applied(result, tuple(first), tuple(then))


def _apply(obj: Obj, rules: list[Rule], cluster: str, before: tuple[Rule, ...], observe: Observer | None) -> Obj:
    for done, rule in enumerate(rules):
        for step in rule.steps:
            try:
                changed = step.change(obj)
                if changed is not obj:
                    check_identity(obj, changed, namespaced=bool(rule.policy.namespace))
            except CannotApply as error:
                applied = (*before, *rules[:done])
                raise OverrideError(rule, rule.place(step.field), str(error), cluster, applied) from error
            if observe is not None:
                observe(rule, step, obj, changed)
            obj = changed
    return obj
