"""The bindings that failover changes: targets and tasks written by a locked patch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from karmada.controllers.binding.kinds import BindingKind
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import ResourceWriter, converge
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import Write

_FIELDS = ("clusters", "gracefulEvictionTasks")


class EvictionBindings:
    def __init__(self, context: Context, kind: BindingKind) -> None:
        self._kind = kind
        self._client = context.client
        self._bindings = ResourceWriter(context.client, kind.gvr, context.informers.of(kind.gvr))

    @property
    def informer(self) -> Informer:
        return self._bindings.informer

    def get(self, key: Key) -> Obj | None:
        """Return None for a binding that is gone or being deleted."""
        binding = self._bindings.get(key)
        return None if binding is None or meta.is_deleting(binding) else binding

    async def change(self, binding: Obj, make: Callable[[Obj], Obj]) -> Write | None:
        """Give a binding the targets and tasks that `make` derives from its current state."""

        async def of(current: Obj | None) -> Obj | None:
            if current is None or meta.is_deleting(current):
                return None
            return {**current, "spec": make(current)}

        written = await converge(of, binding, self._put, partial(self._bindings.live, key_of(binding)))
        if written is not None and written.outcome != "unchanged":
            self.informer.wrote(written.object)
        return written

    async def _put(self, current: Obj | None, wanted: Obj) -> Obj:
        assert current is not None
        metadata = current["metadata"]
        patch = {
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "spec": {field: wanted["spec"].get(field) or None for field in _FIELDS},
        }
        return await self._client.patch(self._kind.gvr, metadata["name"], metadata.get("namespace", ""), patch)
