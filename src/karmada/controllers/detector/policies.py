"""The policies, indexed by what they select.

A template's candidates are looked up by its kind and name: those that select it by name and those that select its kind
otherwise, in its namespace or cluster-wide. Only these are compared, however many policies there are. The other way
round, a new policy finds what it selects among the waiting templates: those that no policy selects yet.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Final

from karmada.api.matching import MISMATCH, ResourceSelectors, selectors_priority
from karmada.controllers.context import Context
from karmada.controllers.detector.claims import BOTH, POLICIES, PolicyKind
from karmada.controllers.templates import Ref
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import get_if_exists

_BY_SELECTION: Final = "selects"
_ANY: Final = ""


class NotYet(ApiError):
    """A precondition is not met yet; the reconcile is retried with back-off."""


def selectors_of(policy: Obj) -> list[Obj]:
    return (policy.get("spec") or {}).get("resourceSelectors") or []


def explicit_priority(policy: Obj) -> int:
    return (policy.get("spec") or {}).get("priority") or 0


def is_lazy(policy: Obj) -> bool:
    return bool((policy.get("spec") or {}).get("activationPreference") == "Lazy")


def selects(policy: Obj, template: Obj) -> bool:
    return precision_of(policy, template) > MISMATCH


def precision_of(policy: Obj, template: Obj) -> int:
    return selectors_priority(selectors_of(policy), template)


def best(policies: Iterable[Obj], template: Obj, precision_of: Callable[[Obj, Obj], int] = precision_of) -> Obj | None:
    """Return the policy with the highest priority; then the one that selects most precisely; then by name."""
    ranked = []
    for policy in policies:
        precision = precision_of(policy, template)
        if precision > MISMATCH and not meta.is_deleting(policy):
            ranked.append((-explicit_priority(policy), -precision, meta.name(policy), policy))
    return min(ranked, key=lambda rank: rank[:3])[3] if ranked else None


def selection(namespace: str, api_version: str, kind: str, name: str) -> str:
    return f"{namespace}|{api_version}|{kind}|{name}"


def selections(policy: Obj) -> Iterator[str]:
    """Yield the index values of a policy: what it selects, in its own namespace if it has one."""
    namespace = meta.namespace(policy)
    for selector in selectors_of(policy):
        yield selection(
            namespace, selector.get("apiVersion") or "", selector.get("kind") or "", selector.get("name") or _ANY
        )


def read(policy: Obj) -> ResourceSelectors:
    return ResourceSelectors.of(selectors_of(policy))


class ReadSelectors:
    """The selectors of the policies of some informers, read once for each version of a policy."""

    def __init__(self, informers: Iterable[Informer]) -> None:
        self._read: dict[str, tuple[list[Obj], ResourceSelectors]] = {}
        """By the uid of a policy, what it was read from and what it says."""
        for informer in informers:
            informer.add_handler(self._forget)

    def _forget(self, old: Obj | None, _new: Obj | None) -> None:
        if old is not None:
            self._read.pop(meta.uid(old), None)

    def of(self, policy: Obj) -> ResourceSelectors:
        source, uid = selectors_of(policy), meta.uid(policy)
        kept = self._read.get(uid)
        if kept is None or kept[0] is not source:
            kept = self._read[uid] = source, read(policy)
        return kept[1]


class Policies:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self.changes = 0
        """How often a policy has changed."""
        self._informers: dict[PolicyKind, Informer] = {}
        self._overrides: dict[PolicyKind, Informer] = {}
        for kind in BOTH:
            self._informers[kind] = context.informers.of(kind.gvr, indexes={_BY_SELECTION: selections})
            self._informers[kind].add_handler(self._count)
            self._overrides[kind] = context.informers.of(kind.overrides)
        self.selectors = ReadSelectors(self._informers.values())

    def _count(self, _old: Obj | None, _new: Obj | None) -> None:
        self.changes += 1

    def selects(self, policy: Obj, template: Obj) -> bool:
        return self._precision(policy, template) > MISMATCH

    def _precision(self, policy: Obj, template: Obj) -> int:
        return self.selectors.of(policy).priority(template)

    def get(self, kind: PolicyKind, key: Key) -> Obj | None:
        return self._informers[kind].get(key)

    def scan(self, kind: PolicyKind, namespace: str = "") -> AsyncIterator[Obj]:
        return self._informers[kind].scan(namespace)

    async def live(self, kind: PolicyKind, key: Key) -> Obj | None:
        return await get_if_exists(self._client, kind.gvr, key.name, key.namespace)

    def choose(self, template: Obj) -> tuple[PolicyKind, Obj] | None:
        """Return the policy that an unclaimed template gets: a namespaced one first."""
        for kind in BOTH:
            policy = self.best(kind, template)
            if policy is not None:
                return kind, policy
        return None

    def best(self, kind: PolicyKind, template: Obj) -> Obj | None:
        namespace, name = meta.key(template)
        if kind is POLICIES and not namespace:
            return None
        space = namespace if kind is POLICIES else ""
        informer = self._informers[kind]
        found = {}
        for wanted in (name, _ANY):
            wanted_selection = selection(space, template["apiVersion"], template["kind"], wanted)
            for policy in informer.by_index(_BY_SELECTION, wanted_selection):
                found[meta.name(policy)] = policy
        return best(found.values(), template, self._precision) if found else None

    @property
    def synced(self) -> bool:
        return all(informer.synced for one in (self._informers, self._overrides) for informer in one.values())

    def has_overrides(self, kind: PolicyKind, policy: Obj) -> bool:
        """Return whether all the dependentOverrides of a policy exist."""
        names = (policy.get("spec") or {}).get("dependentOverrides") or ()
        return all(self._overrides[kind].get(Key(meta.namespace(policy), name)) is not None for name in names)

    def require_overrides(self, kind: PolicyKind, policy: Obj) -> None:
        """NotYet unless all the dependentOverrides of a policy exist."""
        if not self.has_overrides(kind, policy):
            raise NotYet("waiting for dependent overrides")

    def claims_lazily(self, kind: PolicyKind, key: Key) -> bool:
        policy = self.get(kind, key)
        return policy is not None and is_lazy(policy)


class Waiting:
    """Templates that no policy selects yet, by kind, namespace and name."""

    def __init__(self) -> None:
        self._names: dict[GVK, dict[str, dict[str, None]]] = {}

    def __len__(self) -> int:
        return sum(len(names) for spaces in self._names.values() for names in spaces.values())

    def __contains__(self, ref: Ref) -> bool:
        return ref.name in self._names.get(ref.gvk, {}).get(ref.namespace, ())

    def add(self, ref: Ref) -> None:
        self._names.setdefault(ref.gvk, {}).setdefault(ref.namespace, {})[ref.name] = None

    def discard(self, ref: Ref) -> None:
        spaces = self._names.get(ref.gvk)
        names = spaces.get(ref.namespace) if spaces else None
        if spaces is None or names is None:
            return
        names.pop(ref.name, None)
        if not names:
            del spaces[ref.namespace]

    def drop(self, gvk: GVK) -> None:
        """Drop the templates of a kind that is no longer watched."""
        self._names.pop(gvk, None)

    def candidates(self, selectors: Iterable[Obj]) -> Iterator[Ref]:
        """Yield the candidates of the selectors, compared by kind, namespace and name and not by labels.

        Templates may be added and discarded meanwhile; one that several selectors select may come several times.
        """
        for selector in selectors:
            yield from (ref for ref in self._candidates(selector) if ref in self)

    def _candidates(self, selector: Obj) -> Iterator[Ref]:
        gvk = gvk_of(selector)
        spaces = self._names.get(gvk)
        if not spaces:
            return
        namespace, name = selector.get("namespace"), selector.get("name")
        for space in (namespace,) if namespace else tuple(spaces):
            names = spaces.get(space, {})
            if not name:
                yield from (Ref(gvk, space, waiting) for waiting in tuple(names))
            elif name in names:
                yield Ref(gvk, space, name)
