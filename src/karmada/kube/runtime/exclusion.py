"""What a controller leaves alone since it hung the event loop: keys, and objects for its handlers (see quarantine)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_filter import Handler
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.quarantine import QUARANTINE, fingerprint
from karmada.kube.runtime.queue import WorkQueue

_UNTIL_RELEASED: Final = "released from quarantine"


class Exclusion:
    """`fingerprint` returns what the object of a key is now; empty if that is not known."""

    def __init__(self, controller: str, queue: WorkQueue[Key], fingerprint: Callable[[Key], str]) -> None:
        self.held = QUARANTINE.of(controller)
        self._queue = queue
        self._fingerprint = fingerprint
        self._undelivered: dict[str, Callable[[], None]] = {}
        """Delivers the objects that are held, by their names in the quarantine."""

    def follow(self) -> Callable[[], None]:
        """Take up what is released from now on; returns a function that ends that."""
        return self.held.follow(self._take_up)

    def covers(self, key: Key) -> bool:
        """Return whether a key is left alone, and park it if so."""
        if not self.held.holds(str(key), partial(self._fingerprint, key)):
            return False
        self._queue.forget(key)
        self._queue.park(key, _UNTIL_RELEASED)
        return True

    def guarded(self, resource: GVR | GVK, handle: Handler) -> Handler:
        """Return a handler that does not get the objects of a resource that are held."""
        held = self.held
        if not held:
            return handle

        def handle_others(old: Obj | None, new: Obj | None) -> None:
            obj = new if new is not None else old
            name = "" if obj is None else name_of_delivery(resource, obj)
            self._undelivered.pop(name, None)
            if name in held.entries and held.holds(name, partial(fingerprint, new)):
                self._undelivered[name] = partial(handle, None, new)
            else:
                handle(old, new)

        return handle_others

    def _take_up(self) -> None:
        for name in [name for name in self._undelivered if name not in self.held.entries]:
            self._undelivered.pop(name)()
        self._queue.resume(_UNTIL_RELEASED)


def name_of_delivery(resource: GVR | GVK, obj: Obj) -> str:
    """Return how the quarantine names an object that is delivered to handlers."""
    return f"{resource.group_resource if isinstance(resource, GVR) else resource.group_kind} {key_of(obj)}"
