"""An informer's view together with this process's own writes: no controller acts twice because its cache lags.

A write is shown from the moment the server returned it until the informer has reached its resourceVersion; from then on
the informer is right, also when it no longer has the object. The informer's position, not its events, decides: a relist
that skipped a deletion moves the position, so no deleted object stays in view. Versions of two histories (a restored
server, another cluster behind the same name) are never compared: a write of an earlier one ends with the next list.

Only writes that the informer has not caught up with are kept; the others go with the next read or write.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.versions import version


class _Write(NamedTuple):
    history: int
    version: int
    object: Obj | None
    """None when the write removed the last finalizer, and with it the object."""


class OwnWrites:
    def __init__(self, informer: Informer | None = None) -> None:
        """Without an informer (yet), every write is ahead of it."""
        self.informer = informer
        self._writes: OrderedDict[Key, _Write] = OrderedDict()  # a dict would scan what was removed from its front

    def follow(self, informer: Informer) -> None:
        """For objects that are written before there is an informer: from now on it ends what it has caught up with."""
        self.informer = informer
        for key, write in self._writes.items():
            self._writes[key] = write._replace(history=informer.history)

    def wrote(self, obj: Obj) -> None:
        """Record what the server returned for a create, update or patch."""
        informer, written = self.informer, version(obj)
        if informer is not None and informer.has_passed(written):
            return  # as most are by the time of the response, where the server is in this process
        key, history = key_of(obj), 0 if informer is None else informer.history
        if informer is not None and informer.has_reached(key, written, history):
            return
        known = self._writes.pop(key, None)
        if known is not None and known.history == history and known.version >= written:
            self._writes[key] = known
            return
        self._drop_oldest()
        shown = obj if informer is None else informer.shown(obj)
        self._writes[key] = _Write(history, written, None if _is_gone(obj) else shown)

    def get(self, key: Key) -> Obj | None:
        """The object, at least as new as the last write of it here."""
        written = self._writes.get(key)
        if written is not None:
            if self._is_ahead(key, written):
                return written.object
            del self._writes[key]
        return None if self.informer is None else self.informer.get(key)

    def is_pending(self, key: Key) -> bool:
        """Whether the informer has not caught up with the last write."""
        written = self._writes.get(key)
        return written is not None and self._is_ahead(key, written)

    def pending(self) -> list[Obj]:
        """The objects written here that the informer does not have yet."""
        for key in [key for key, written in self._writes.items() if not self._is_ahead(key, written)]:
            del self._writes[key]
        return [written.object for written in self._writes.values() if written.object is not None]

    def is_echo(self, new: Obj | None) -> bool:
        """Whether an event, for the handler that gets it, is that of the last write here; `new` is its object."""
        written = None if new is None or not self._writes else self._writes.get(key_of(new))
        return written is not None and new is not None and written.version == version(new)

    def forget(self, key: Key) -> None:
        """Show what the informer has, e.g. after a delete."""
        self._writes.pop(key, None)

    def clear(self) -> None:
        self._writes.clear()

    def _is_ahead(self, key: Key, written: _Write) -> bool:
        informer = self.informer
        return informer is None or not informer.has_reached(key, written.version, written.history)

    def _drop_oldest(self) -> None:
        """Writes come nearly in the order of their versions, so what the informer has caught up with is in front."""
        while self._writes:
            key = next(iter(self._writes))
            if self._is_ahead(key, self._writes[key]):
                return
            del self._writes[key]


def _is_gone(obj: Obj) -> bool:
    metadata = obj["metadata"]
    return meta.is_deleting(obj) and not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")
