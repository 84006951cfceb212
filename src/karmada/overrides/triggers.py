"""Which bindings have to be rendered again when a policy or a cluster changes: those that can come out differently.

`affected` compares two versions of a policy and says what it reaches: the selectors, and of the rules only those that
were added, taken away or moved. `Triggers` finds the bindings: by the names and kinds that selectors name, then by the
labels of their templates, then by whether one of their clusters is one for which a changed rule holds. Where something
is not known, the answer is yes: rendering once too often writes nothing.

Of a cluster only labels, provider, region and zones count, and only for the rules that then hold or no longer do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.api.well_known import binding_name
from karmada.api.work import ResourceBinding
from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Watch
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of
from karmada.overrides.compiled import Policy, Rule, Selector
from karmada.overrides.engine import Overrides

BY_KIND: Final = "override-kind"
"""Bindings by the kind of their template, in its namespace and everywhere: `namespace|apiVersion|kind`."""
_FIELDS: Final = ("provider", "region", "zones")

Template = Callable[[Obj], Obj | None]
"""(spec.resource of a binding): the template with at least its labels, None when it is not known."""


def kinds_of(binding: Obj) -> Iterable[str]:
    resource = binding["spec"]["resource"]
    everywhere = f"|{resource.get('apiVersion')}|{resource.get('kind')}"
    namespace = resource.get("namespace")
    return (everywhere, namespace + everywhere) if namespace else (everywhere,)


class Affected(NamedTuple):
    """What a policy reaches: `namespace` is its own; without selectors everything; `rules` are those that changed."""

    namespace: str
    selectors: tuple[Selector, ...]
    rules: tuple[Rule, ...]


def affected(old: Obj | None, new: Obj | None) -> list[Affected]:
    """What comes out differently when a policy changes from one version to the other; None where there is none."""
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
        return tuple(_watch(kind.gvr, self.of_policy) for kind in kinds)

    def cluster_watch(self) -> Watch:
        """Changes of clusters after which other rules hold for them."""
        return _watch(Cluster.gvr, self.of_cluster)

    def of_policy(self, old: Obj | None, new: Obj | None) -> set[Key]:
        """The bindings that come out differently after a change of a policy."""
        return {
            key_of(binding)
            for part in affected(old, new)
            if part.rules
            for binding in self._selected(part)
            if self._goes_where(binding, part.rules)
        }

    def of_cluster(self, old: Obj | None, new: Obj | None) -> set[Key]:
        """The bindings that come out differently after a change of a cluster; none for one that comes or goes."""
        if old is None or new is None or target_fields(old) == target_fields(new):
            return set()
        name = new["metadata"]["name"]
        return {
            key_of(binding)
            for policy in self._selecting_clusters()
            if any(rule.matches(old) != rule.matches(new) for rule in policy.rules)
            for binding in self._selected(_whole(policy))
            if name in _targets(binding)
        }

    def _selecting_clusters(self) -> Iterator[Policy]:
        yield from self._overrides.cluster_wide.selecting_clusters()
        if self._namespaced:
            yield from self._overrides.namespaced.selecting_clusters()

    # bindings of what is selected

    def _selected(self, part: Affected) -> Iterator[Obj]:
        if not part.selectors:
            yield from self._looked_up(self._bindings.keys(part.namespace))
            return
        for selector in part.selectors:
            namespace = part.namespace or selector.namespace
            for binding in self._candidates(selector, namespace):
                if self._selects(selector, binding["spec"]["resource"], namespace, own=part.namespace):
                    yield binding

    def _candidates(self, selector: Selector, namespace: str) -> Iterator[Obj]:
        if selector.name and (namespace or not self._namespaced):
            return self._looked_up([Key(namespace, binding_name(selector.kind, selector.name))])
        kind = f"{namespace}|{selector.api_version}|{selector.kind}"
        return self._looked_up(self._bindings.keys_by_index(BY_KIND, kind))

    def _looked_up(self, keys: Iterable[Key]) -> Iterator[Obj]:
        """One after the other: all of them at once may be more than fits."""
        found = (self._bindings.get(key) for key in keys)
        return (binding for binding in found if binding is not None)

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
        """Whether one of the rules holds for one of the binding's clusters."""
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
    """All that rules can select a cluster by, its name aside."""
    spec = cluster.get("spec") or {}
    return meta.labels(cluster), *(spec.get(field) or None for field in _FIELDS)


def _targets(binding: Obj) -> set[str]:
    """The scheduler's choice, and where those that need this one go."""
    spec = binding["spec"]
    places = [spec.get("clusters"), *(snapshot.get("clusters") for snapshot in spec.get("requiredBy") or ())]
    return {target["name"] for place in places for target in place or ()}


def _watch(resource: GVR, keys_of: Callable[[Obj | None, Obj | None], set[Key]]) -> Watch:
    """A watch whose keys depend on both sides of a change.

    A controller calls `when` with both and then `map_to` with each of them: the keys are found in the first and given
    to the first of the second.
    """
    found: list[Key] = []

    def when(old: Obj | None, new: Obj | None) -> bool:
        found[:] = keys_of(old, new)
        return bool(found)

    def map_to(_obj: Obj) -> Iterable[Key]:
        keys = tuple(found)
        found.clear()
        return keys

    return Watch(resource, when=when, map_to=map_to)
