"""ReplicaSchedulingPolicies: an older kind that decides on replicas instead of the template and its policy.

At most one applies to a template: one of its namespace before a cluster-wide one, then the one that selects it most
precisely, then by name. One without selectors selects everything. They are indexed by what they select, as propagation
policies are, so that a template is compared with few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from karmada.api.config import ReplicaSchedulingPolicy as ClusterWide
from karmada.api.matching import MATCH_ALL, MISMATCH, ResourceSelectors
from karmada.api.policy import ReplicaSchedulingPolicy as Namespaced
from karmada.controllers.context import Context
from karmada.controllers.detector.policies import ReadSelectors, read, selection, selections, selectors_of
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

KINDS: Final[tuple[GVR, ...]] = (Namespaced.gvr, ClusterWide.gvr)
"""In order of precedence."""
_BY_SELECTION: Final = "selects"
_EVERYTHING: Final = ""


def precision(rules: Obj, template: Obj, selectors: ResourceSelectors | None = None) -> int:
    """Return how precisely one selects a template; MISMATCH if it does not. `selectors` are its own, if read before."""
    namespace = meta.namespace(rules)
    if meta.is_deleting(rules) or (namespace and namespace != meta.namespace(template)):
        return MISMATCH
    selectors = read(rules) if selectors is None else selectors
    return selectors.priority(template) if selectors else MATCH_ALL


def best(candidates: Iterable[Obj], template: Obj, read: Callable[[Obj], ResourceSelectors] = read) -> Obj | None:
    """Return the policy of one kind that decides on the replicas of a template."""
    ranked = [
        (-precision(rules, template, read(rules)), meta.name(rules), rules) for rules in candidates if decides(rules)
    ]
    first = min(ranked, key=lambda rank: rank[:2], default=None)
    return first[2] if first is not None and first[0] != -MISMATCH else None


def decides(rules: Obj) -> bool:
    """Return whether it has something to say about replicas, and not only about rescheduling."""
    return any(rules["spec"].get(field) is not None for field in ("totalReplicas", "preferences"))


def divided(spec: Obj, rules: Obj) -> Obj:
    """Return a binding's spec with the replicas and the weights of a ReplicaSchedulingPolicy, as far as it has them."""
    total, weights = rules["spec"].get("totalReplicas"), rules["spec"].get("preferences")
    if total is not None:
        spec = {**spec, "replicas": total}
    if weights is not None:
        scheduling = {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": weights,
        }
        spec = {**spec, "placement": {**spec["placement"], "replicaScheduling": scheduling}}
    return spec


def _index(rules: Obj) -> Iterator[str]:
    yield from selections(rules) if selectors_of(rules) else (f"{meta.namespace(rules)}|{_EVERYTHING}",)


class ReplicaPolicies:
    def __init__(self, context: Context) -> None:
        self._informers = {kind: context.informers.of(kind, indexes={_BY_SELECTION: _index}) for kind in KINDS}
        self._selectors = ReadSelectors(self._informers.values())

    def get(self, kind: GVR, key: Key) -> Obj | None:
        return self._informers[kind].get(key)

    def of(self, template: Obj) -> Obj | None:
        """Return the one that decides on the replicas of a template."""
        namespace, name = meta.key(template)
        for informer, space in zip(self._informers.values(), (namespace, ""), strict=True):
            if not len(informer):
                continue
            found: dict[str, Obj] = {}
            exact = [selection(space, template["apiVersion"], template["kind"], wanted) for wanted in (name, "")]
            for value in (*exact, f"{space}|{_EVERYTHING}"):
                found |= {meta.name(rules): rules for rules in informer.by_index(_BY_SELECTION, value)}
            rules = best(found.values(), template, self._selectors.of)
            if rules is not None:
                return rules
        return None
