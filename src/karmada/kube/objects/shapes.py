"""Shapes: how much of an object somebody wants, said once for lists, watches, informers and what these keep.

A shape is plain data. Its functions must be named ones, not made for each caller: whoever asks for an equal shape of
the same objects shares one informer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from karmada.kube.objects.meta import without_managed_fields
from karmada.kube.objects.types import Obj, Parse


class Shape(NamedTuple):
    name: str
    """Tells shapes apart that are made alike but are not to be shared."""
    of_object: Callable[[Obj], Obj] | None = None
    """Makes it of a whole object, and with `as_docs` of one in this shape, too.

    Its name, namespace, uid and resourceVersion must stay.
    """
    of_bytes: Parse | None = None
    """Makes of an object's bytes all that `of_object` leaves of the object, without the rest being parsed."""
    only_metadata: bool = False
    """Nothing but `metadata` may be relied on; the rest does not travel over the network."""
    paged: bool = False
    """There are many, of which little is kept: each page of a list is kept as it comes, never the whole list."""
    as_docs: bool = False
    """Many large ones are read one by one: kept as Docs, made when they are read. Listed in pages, too."""

    @classmethod
    def summary(cls, of_object: Callable[[Obj], Obj]) -> Shape:
        """Return the shape of many objects of which `of_object` leaves little."""
        return cls(of_object.__qualname__, of_object, paged=True)

    def of(self, obj: Obj) -> Obj:
        """Return a whole object in this shape."""
        return obj if self.of_object is None else self.of_object(obj)


WHOLE: Final = Shape("whole")
METADATA: Final = Shape("metadata", only_metadata=True)
BARE: Final = Shape("bare", without_managed_fields)
"""The object without managedFields."""
BARE_DOCS: Final = BARE._replace(name="bare documents", as_docs=True)
