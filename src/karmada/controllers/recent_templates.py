"""Templates that were read a moment ago, for the other controllers on the way of a template, which read the same one.

The last read is returned while the informer that watches the kind shows the same version. As many are kept as are on
their way at once: the controllers reconcile them in groups (see context).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from karmada.controllers.template_refs import Ref
from karmada.kube.objects.doc import SharedObject
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer

_MOST, _MOST_BYTES = 512, 4 << 20
_UNKNOWN_WEIGHT: Final = _MOST_BYTES // 64
"""Bytes that a template from a remote server is counted with, whose size nobody knows."""


class _Read(NamedTuple):
    template: Obj
    informer: Informer | None
    """Which shows whether it has changed; None where nobody watches its kind."""
    history: int


class RecentTemplates:
    def __init__(self) -> None:
        self._read: Memo[Ref, _Read] = Memo(_MOST, most_weight=_MOST_BYTES)

    def keep(self, ref: Ref, template: Obj, informer: Informer | None, history: int) -> None:
        """For the next controller that reads it, soon; `history` is the informer's from before it was read."""
        weight = template.source.weight if isinstance(template, SharedObject) else _UNKNOWN_WEIGHT
        self._read.put(ref, _Read(template, informer, history), weight)

    def find(self, ref: Ref, informer: Informer | None) -> Obj | None:
        """Return a whole template, if it is still what this informer of light templates shows."""
        found = self._read.get(ref)
        if found is None or informer is None or found.informer is not informer or found.history != informer.history:
            return None
        light = informer.get(ref.key) if informer.running and informer.synced else None
        if light is None:
            return None
        read, shown = found.template["metadata"], light["metadata"]
        same = read["uid"] == shown["uid"] and read["resourceVersion"] == shown["resourceVersion"]
        return found.template if same else None

    def drop(self, ref: Ref) -> None:
        self._read.drop(ref)
