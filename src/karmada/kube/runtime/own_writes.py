"""An informer's view, with what this process has written since: nobody acts twice because the news is still on its way.

What a write returned counts until the informer has come as far as that write; from then on the informer is right, also
when it no longer has the object. Only what is under way is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of


def version(obj: Obj) -> int:
    """A resourceVersion as the number it is; 0 for one that is none."""
    return number(obj["metadata"].get("resourceVersion", ""))


def number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


class OwnWrites:
    def __init__(self, informer: Informer) -> None:
        self.informer = informer
        self._ahead: dict[Key, Obj] = {}
        informer.add_handler(self._heard)

    def wrote(self, obj: Obj) -> None:
        """What the server answered to a write."""
        key = key_of(obj)
        if version(obj) > max(number(self.informer.resource_version), self._ahead_version(key)):
            self._ahead[key] = obj

    def get(self, key: Key) -> Obj | None:
        ahead = self._ahead.get(key)
        if ahead is None:
            return self.informer.get(key)
        if version(ahead) > number(self.informer.resource_version):
            return ahead
        del self._ahead[key]
        return self.informer.get(key)

    def unheard(self) -> Iterable[Obj]:
        """What was written and has not come back yet."""
        return list(self._ahead.values())

    def _ahead_version(self, key: Key) -> int:
        ahead = self._ahead.get(key)
        return 0 if ahead is None else version(ahead)

    def _heard(self, old: Obj | None, new: Obj | None) -> None:
        if not self._ahead:
            return
        obj = new if new is not None else old
        assert obj is not None
        key = key_of(obj)
        ahead = self._ahead.get(key)
        if ahead is None:
            return
        gone = new is None and obj["metadata"].get("uid") == ahead["metadata"].get("uid")
        if gone or version(obj) >= version(ahead):
            del self._ahead[key]
