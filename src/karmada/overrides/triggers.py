"""Which bindings have to be rendered again when a policy or a cluster changes: those that can come out differently.

`affected` compares two versions of a policy and says what it reaches: the selectors, and of the rules only those that
were added, taken away or moved. `Triggers` finds the bindings: by the names and kinds that selectors name, then by the
labels of their templates, then by whether one of their clusters is one for which a changed rule holds. Where something
is not known, the answer is yes: rendering once too often writes nothing.

Of a cluster only labels, provider, region and zones count, and only for the rules that then hold or no longer do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.api.well_known import binding_name
from karmada.api.work import ResourceBinding
from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.cache import ignores_status
from karmada.kube.runtime.controller import Enqueue, Watch
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.time_slice import in_slices
from karmada.overrides.compiled import Policy, Rule, Selector
from karmada.overrides.engine import Overrides

BY_KIND: Final = "override-kind"
"""Bindings by the kind of their template, in its namespace and everywhere: `namespace|apiVersion|kind`."""
_FIELDS: Final = ("provider", "region", "zones")

Template = Callable[[Obj], Obj | None]
"""(spec.resource of a binding): the template with at least its labels, None when it is not known."""


@ignores_status
def kinds_of(binding: Obj) -> Iterable[str]:
    resource = binding["spec"]["resource"]
    everywhere = f"|{resource.get('apiVersion')}|{resource.get('kind')}"
    namespace = resource.get("namespace")
    return (everywhere, namespace + everywhere) if namespace else (everywhere,)


class Affected(NamedTuple):
    """The objects that a policy reaches: `namespace` is its own; without selectors everything; `rules` changed."""

    namespace: str
    selectors: tuple[Selector, ...]
    rules: tuple[Rule, ...]


def affected(old: Obj | None, new: Obj | None) -> list[Affected]:
    """Return what comes out differently when a policy changes from one version to the other; None for nothing."""
    if old is not None and new is not None and old.get("spec") == new.get("spec"):
        return []
    before, after = (None if policy is None else Policy(policy) for policy in (old, new))
    if before is not None and after is not None and before.selectors == after.selectors:
        return [Affected(after.namespace, after.selectors, _changed(before.rules, after.rules))]
    return [_whole(policy) for policy in (before, after) if policy is not None]


def _whole(policy: Policy) -> Affected:
    return Affected(policy.namespace, policy.selectors, policy.rules)


def _changed(old: Sequence[Rule], new: Sequence[Rule]) -> tuple[Rule, ...]:
    """Rules that only one side has; all of them when those of both sides are in another order."""
    stayed_old, stayed_new = _in_both(old, new), _in_both(new, old)
    if len(stayed_old) != len(stayed_new) or not all(map(Rule.says_the_same, stayed_old, stayed_new)):
        return (*old, *new)
    stayed = {id(rule) for rule in (*stayed_old, *stayed_new)}
    return tuple(rule for rule in (*old, *new) if id(rule) not in stayed)


def _in_both(rules: Sequence[Rule], others: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if any(rule.says_the_same(other) for other in others)]


class Triggers:
    """For the bindings of one kind."""

    def __init__(
        self, informers: Informers, bindings: GVR, overrides: Overrides, template: Template | None = None
    ) -> None:
        """Without `template`, selectors with labels count for all templates of their kind."""
        self._namespaced = bindings == ResourceBinding.gvr
        self._bindings = informers.of(bindings, indexes={BY_KIND: kinds_of})
        self._overrides = overrides
        self._template = template

    def watches(self) -> tuple[Watch, ...]:
        """For the controller of the bindings: all changes of policies that matter to it."""
        kinds = (OverridePolicy, ClusterOverridePolicy) if self._namespaced else (ClusterOverridePolicy,)
        return tuple(Watch(kind.gvr, walk=self._requeue_of_policy) for kind in kinds)

    def cluster_watch(self) -> Watch:
        """Select changes of clusters after which other rules hold for them."""
        return Watch(Cluster.gvr, walk=self._requeue_of_cluster)

    async def _requeue_of_policy(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        async for key in self.of_policy(old, new):
            add(key)

    async def _requeue_of_cluster(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        async for key in self.of_cluster(old, new):
            add(key)

    async def of_policy(self, old: Obj | None, new: Obj | None) -> AsyncIterator[Key]:
        """Yield the bindings that come out differently after a change of a policy."""
        for part in affected(old, new):
            if part.rules:
                async for binding in self._selected(part):
                    if self._goes_where(binding, part.rules):
                        yield key_of(binding)

    async def of_cluster(self, old: Obj | None, new: Obj | None) -> AsyncIterator[Key]:
        """Yield the bindings that come out differently after a change of a cluster; none for one that comes or goes."""
        if old is None or new is None or target_fields(old) == target_fields(new):
            return
        name = new["metadata"]["name"]
        async for policy in in_slices(self._selecting_clusters()):
            if any(rule.matches(old) != rule.matches(new) for rule in policy.rules):
                async for binding in self._selected(_whole(policy)):
                    if name in _targets(binding):
                        yield key_of(binding)

    def _selecting_clusters(self) -> list[Policy]:
        namespaced = self._overrides.namespaced.selecting_clusters() if self._namespaced else ()
        return [*self._overrides.cluster_wide.selecting_clusters(), *namespaced]

    # bindings of what is selected

    async def _selected(self, part: Affected) -> AsyncIterator[Obj]:
        if not part.selectors:
            async for binding in self._bindings.scan(part.namespace):
                yield binding
            return
        for selector in part.selectors:
            namespace = part.namespace or selector.namespace
            async for key in in_slices(self._candidates(selector, namespace)):
                found = self._bindings.get(key)
                if found and self._selects(selector, found["spec"]["resource"], namespace, own=part.namespace):
                    yield found

    def _candidates(self, selector: Selector, namespace: str) -> list[Key]:
        if selector.name and (namespace or not self._namespaced):
            return [Key(namespace, binding_name(selector.kind, selector.name))]
        return self._bindings.keys_by_index(BY_KIND, f"{namespace}|{selector.api_version}|{selector.kind}")

    def _selects(self, selector: Selector, resource: Obj, namespace: str, *, own: str) -> bool:
        api_version, kind, name = resource.get("apiVersion", ""), resource.get("kind", ""), resource.get("name", "")
        there = resource.get("namespace") or ""
        if namespace and namespace != there:
            return False
        if selector.name or selector.labels is None:
            return selector.priority((api_version, kind, there, name, {})) > 0
        template = self._template(resource) if self._template is not None else None
        if template is None or selector.priority((api_version, kind, there, name, meta.labels(template))) > 0:
            return True
        return bool(own) and self._may_be_relabelled(api_version, kind, there, name)

    def _may_be_relabelled(self, api_version: str, kind: str, namespace: str, name: str) -> bool:
        """Namespaced policies see the labels that cluster-wide ones have made."""
        policies = self._overrides.cluster_wide.candidates((api_version, kind, namespace, name))
        return any(rule.changes_labels for policy in policies for rule in policy.rules)

    def _goes_where(self, binding: Obj, rules: Iterable[Rule]) -> bool:
        """Return whether one of the rules holds for one of the binding's clusters."""
        names = _targets(binding)
        return bool(names) and any(rule.target is None or self._holds(rule, names) for rule in rules)

    def _holds(self, rule: Rule, names: Iterable[str]) -> bool:
        for name in names:
            try:
                if rule.matches(self._overrides.cluster(name)):
                    return True
            except NotFound:
                return True
        return False


def target_fields(cluster: Obj) -> tuple[Any, ...]:
    """Return all that rules can select a cluster by, its name aside."""
    spec = cluster.get("spec") or {}
    return meta.labels(cluster), *(spec.get(field) or None for field in _FIELDS)


def _targets(binding: Obj) -> set[str]:
    """Return the scheduler's choice, and where those that need this one go."""
    spec = binding["spec"]
    places = [spec.get("clusters"), *(snapshot.get("clusters") for snapshot in spec.get("requiredBy") or ())]
    return {target["name"] for place in places for target in place or ()}
