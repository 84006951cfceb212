"""Which autoscalers select which pods: two that select the same pod would scale against each other.

Selectors are found through one of their equalities, so that a pod is compared only with those that may select it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karmada.kube.objects.selectors import LabelSelector
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

_Bucket = tuple[str, str, str]


class PodSelectors:
    """The selector of each autoscaler's pods when it was last reconciled."""

    def __init__(self) -> None:
        self._selectors: dict[Key, LabelSelector] = {}
        self._buckets: dict[_Bucket, dict[Key, LabelSelector]] = {}

    def __len__(self) -> int:
        return len(self._selectors)

    def register(self, key: Key, selector: LabelSelector) -> None:
        if self._selectors.get(key) == selector:
            return
        self.forget(key)
        self._selectors[key] = selector
        self._buckets.setdefault(_bucket(key, selector), {})[key] = selector

    def forget(self, key: Key) -> None:
        selector = self._selectors.pop(key, None)
        if selector is None:
            return
        name = _bucket(key, selector)
        bucket = self._buckets[name]
        del bucket[key]
        if not bucket:
            del self._buckets[name]

    def others(self, key: Key, pods: Iterable[Obj]) -> list[Key]:
        """Further autoscalers of its namespace that select some of these pods, in the order of their names."""
        found: set[Key] = set()
        for pod in pods:
            labels = pod["metadata"].get("labels") or {}
            for bucket in self._candidates(key.namespace, labels):
                found.update(other for other, selector in bucket.items() if selector.matches(labels))
        found.discard(key)
        return sorted(found)

    def ambiguity(self, key: Key, selector: str, pods: Iterable[Obj]) -> str:
        """Return what is wrong, for people, if others select some of these pods; else an empty text."""
        others = self.others(key, pods)
        if not others:
            return ""
        named = " ".join(str(one) for one in sorted([key, *others]))
        return f"pods by selector {selector} are controlled by multiple HPAs: [{named}]"

    def _candidates(self, namespace: str, labels: dict[str, str]) -> Iterator[dict[Key, LabelSelector]]:
        for name in ((namespace, "", ""), *((namespace, *pair) for pair in labels.items())):
            bucket = self._buckets.get(name)
            if bucket is not None:
                yield bucket


def _bucket(key: Key, selector: LabelSelector) -> _Bucket:
    pairs = selector.equalities
    return (key.namespace, *pairs[0]) if pairs else (key.namespace, "", "")
