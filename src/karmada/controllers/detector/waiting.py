"""Templates that no policy selects yet, by kind, namespace and name: a new policy finds those it selects at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karmada.controllers.template_refs import Ref
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj


class Waiting:
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
