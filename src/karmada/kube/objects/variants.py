"""Objects that differ in some values only, as what they share and those values: each is made when it is read.

For many objects of few sorts (Events): whoever knows a pattern already needs nothing but the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj

Place = tuple[str, str]
"""A member of an object (empty: the object itself), and a field in it."""


class Pattern:
    """What objects share. Never changes, so that it can be recognised."""

    __slots__ = ("_obj", "places")

    def __init__(self, obj: Obj, places: Sequence[Place]) -> None:
        """`obj` is one of them; it has a value in each place."""
        self._obj = obj
        self.places = tuple(places)

    def object(self, values: Sequence[Any]) -> Obj:
        made: Obj = copy_json(self._obj)
        for (member, key), value in zip(self.places, values, strict=True):
            (made[member] if member else made)[key] = value
        return made


class Variant(NamedTuple):
    pattern: Pattern
    values: Sequence[Any]
    """In the places of the pattern."""


class Variants(Sequence[Obj]):
    def __init__(self, variants: Sequence[Variant]) -> None:
        self.variants = variants

    def __len__(self) -> int:
        return len(self.variants)

    @overload
    def __getitem__(self, index: int) -> Obj: ...

    @overload
    def __getitem__(self, index: slice) -> Variants: ...

    def __getitem__(self, index: int | slice) -> Obj | Variants:
        """An object is made anew each time: it may be changed."""
        if isinstance(index, slice):
            return Variants(self.variants[index])
        pattern, values = self.variants[index]
        return pattern.object(values)
