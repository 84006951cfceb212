"""The interpreter: queries its layers in order; the first one enabled for the kind and operation decides.

Layers come in the order in which they are given: what users declare (scripts, then webhooks), what is known of
third-party kinds, plug-ins. The native layer is always the last. A layer that says it is `enabled` for a kind and an
operation is final: when it fails, the call fails, and lower layers are not queried.

The methods are async, because a webhook has to be waited for. That costs the hot path about 0.2 µs a call: awaiting a
coroutine that never suspends does not touch the event loop, and the native layer itself is called, not awaited. Code
that is not async, and only wants built-in knowledge, can use `Interpreter.native` directly.

Objects go in and come out as plain dicts that share their parts: nothing that is passed in is ever changed, and an
answer that is an object may be the very object that was passed in, when there is nothing to change in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from karmada.api.interpreter_context import Operation
from karmada.interpreter import operations
from karmada.interpreter.native.layer import Native
from karmada.interpreter.operations import InterpreterError, Replicas
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj


class Layer(Protocol):
    """A source of knowledge about kinds. Only called for what it is enabled for; raises InterpreterError on failure."""

    @property
    def remote(self) -> bool:
        """Return whether it answers over the network, and may take long."""

    def enabled(self, gvk: GVK, operation: Operation) -> bool:
        """Return whether it implements this operation for this kind. Called on every request, so it must be a lookup.

        A layer that is not synced yet raises InterpreterError, which ends the call.
        """

    async def get_replicas(self, obj: Obj) -> Replicas: ...

    async def get_components(self, obj: Obj) -> list[Obj]: ...

    async def revise_replica(self, obj: Obj, replicas: int) -> Obj: ...

    async def retain(self, desired: Obj, observed: Obj) -> Obj: ...

    async def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj: ...

    async def get_dependencies(self, obj: Obj) -> list[Obj]: ...

    async def reflect_status(self, obj: Obj) -> Obj | None: ...

    async def interpret_health(self, obj: Obj) -> bool: ...


class Interpreter:
    def __init__(self, layers: Sequence[Layer] = (), *, native: Native | None = None) -> None:
        """`layers` in the order in which they are queried, before the native one."""
        self.layers: Sequence[Layer] = tuple(layers)
        """May be replaced as a whole."""
        self.native = native or Native()

    def enabled(self, gvk: GVK, operation: Operation) -> bool:
        """Return whether anybody answers; without an answer most callers have something of their own to do."""
        return self.native.enabled(gvk, operation) or any(layer.enabled(gvk, operation) for layer in self.layers)

    def remote(self, obj: Obj, wanted: Iterable[Operation]) -> bool:
        """Return whether one of the wanted operations is answered over the network, and may take long."""
        if not any(layer.remote for layer in self.layers):
            return False
        answering = (self._layer_of(obj, operation) for operation in wanted)
        return any(layer is not None and layer.remote for layer in answering)

    async def get_replicas(self, obj: Obj) -> Replicas:
        """Return how many replicas a template wants, and what one needs."""
        layer = self._layer_of(obj, operations.INTERPRET_REPLICA)
        return self.native.get_replicas(obj) if layer is None else await layer.get_replicas(obj)

    async def get_components(self, obj: Obj | None) -> list[Obj]:
        """Return the kinds of Pods a template consists of, each with its replicas; nothing native has several."""
        if obj is None:
            raise InterpreterError("nil object")
        layer = self._layer_of(obj, operations.INTERPRET_COMPONENT)
        if layer is None:
            raise InterpreterError("interface GetComponents not implemented yet")
        return await layer.get_components(obj)

    async def revise_replica(self, obj: Obj, replicas: int) -> Obj:
        """Return the template with another number of replicas."""
        layer = self._layer_of(obj, operations.REVISE_REPLICA)
        return self.native.revise_replica(obj, replicas) if layer is None else await layer.revise_replica(obj, replicas)

    async def retain(self, desired: Obj, observed: Obj) -> Obj:
        """Return what is to be applied, with what the cluster itself has decided (`observed`) kept."""
        layer = self._layer_of(desired, operations.RETAIN)
        return self.native.retain(desired, observed) if layer is None else await layer.retain(desired, observed)

    async def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj:
        """Return the template with the status that the clusters' make together; `items` are of aggregatedStatus."""
        layer = self._layer_of(obj, operations.AGGREGATE_STATUS)
        return self.native.aggregate_status(obj, items) if layer is None else await layer.aggregate_status(obj, items)

    async def get_dependencies(self, obj: Obj) -> list[Obj]:
        """Return references to what has to be wherever the template goes."""
        layer = self._layer_of(obj, operations.INTERPRET_DEPENDENCY)
        return self.native.get_dependencies(obj) if layer is None else await layer.get_dependencies(obj)

    async def reflect_status(self, obj: Obj) -> Obj | None:
        """Return what of an object's status in a cluster is reported; None when there is nothing to report."""
        layer = self._layer_of(obj, operations.INTERPRET_STATUS)
        return self.native.reflect_status(obj) if layer is None else await layer.reflect_status(obj)

    async def interpret_health(self, obj: Obj) -> bool:
        """Return whether an object in a cluster does what it is there for."""
        layer = self._layer_of(obj, operations.INTERPRET_HEALTH)
        return self.native.interpret_health(obj) if layer is None else await layer.interpret_health(obj)

    def _layer_of(self, obj: Obj, operation: Operation) -> Layer | None:
        """Return the first layer that answers; None leaves it to the native one."""
        layers = self.layers
        if layers:
            gvk = gvk_of(obj)
            for layer in layers:
                if layer.enabled(gvk, operation):
                    return layer
        return None
