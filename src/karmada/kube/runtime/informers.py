"""Shared informers: one per resource and selection, for all parts of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping
from typing import NamedTuple

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.shapes import WHOLE, Shape
from karmada.kube.runtime.cache import IndexFn
from karmada.kube.runtime.delivery import deliver_by_name
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.waiting import cancel_and_wait

_FEW = 500
"""Objects of a kind that are delivered at once."""


class _Selection(NamedTuple):
    resource: GVR | GVK
    namespace: str
    label_selector: str
    field_selector: str
    shape: Shape


class Limit(NamedTuple):
    """The part of a resource that a process may see."""

    namespace: str = ""
    field_selector: str = ""


class Informers:
    """Get one with `of`; those that are made after `start` start at once."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        shape: Shape = WHOLE,
        shapes: Mapping[GVR | GVK, Shape] | None = None,
        limits: Mapping[GVR | GVK, Limit] | None = None,
        optional: Container[GVR | GVK] = (),
    ) -> None:
        """`shape` is how much informers keep of an object where neither `of` nor `shapes`, by resource, says otherwise.

        Of resources with a limit nothing outside it is listed or watched, whoever gets the informer. The server may not
        have those that are `optional`.
        """
        self._limits = limits or {}
        self._shape = shape
        self._shapes = shapes or {}
        self._optional = optional
        self.client = client
        self.clock = clock or RealClock()
        self._informers: dict[_Selection, Informer] = {}
        self._started = False
        self._delivering: set[asyncio.Task[None]] = set()

    def of(
        self,
        gvr: GVR | GVK,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        shape: Shape | None = None,
        indexes: Mapping[str, IndexFn] | None = None,
    ) -> Informer:
        """Return the informer that all share who select the same objects in the same shape."""
        limit = self._limits.get(gvr)
        if limit is not None:
            namespace = namespace or limit.namespace
            field_selector = ",".join(filter(None, (field_selector, limit.field_selector)))
        if shape is None:
            shape = self._shapes.get(gvr, self._shape)
        selection = _Selection(gvr, namespace, label_selector, field_selector, shape)
        informer = self._informers.get(selection)
        if informer is None:
            optional = gvr in self._optional
            informer = Informer(self.client, *selection, indexes=indexes, clock=self.clock, optional=optional)
            self._informers[selection] = informer
            if self._started:
                informer.start()
        else:
            for name, function in (indexes or {}).items():
                informer.add_index(name, function)
        return informer

    def existing(self, gvr: GVR | GVK, shape: Shape) -> Informer | None:
        """Return the informer of all objects of a resource that `of` has given out in this shape, if it has."""
        return self._informers.get(_Selection(gvr, "", "", "", shape))

    def all(self) -> list[Informer]:
        return list(self._informers.values())

    def start(self) -> None:
        self._started = True
        for informer in self._informers.values():
            informer.start()

    @property
    def synced(self) -> bool:
        return all(informer.synced for informer in self._informers.values())

    def unsynced(self) -> list[Informer]:
        return [informer for informer in self._informers.values() if not informer.synced]

    async def wait_synced(self) -> None:
        for informer in list(self._informers.values()):
            await informer.wait_synced()

    async def deliver_existing(self) -> None:
        """Call the handlers that have subscribed (see Informer) for the objects that exist.

        The few of most kinds come first: a policy that came after tens of thousands of bindings would be reconciled
        after many of these, and have what it selects checked a second time. Those of large kinds are delivered as they
        are reconciled, which is not waited for.
        """
        found = sorted(self._informers.values(), key=len)
        for informer in found:
            if len(informer) <= _FEW:
                await informer.deliver_existing()
        many = [informer for informer in found if len(informer) > _FEW]
        if many:
            task = asyncio.create_task(deliver_by_name(many), name="deliver existing objects")
            self._delivering.add(task)
            task.add_done_callback(self._delivering.discard)

    async def drop(self, gvr: GVR | GVK) -> None:
        """Stop and forget every informer of a resource (e.g. when its CRD is gone)."""
        gone = [selection for selection in self._informers if selection.resource == gvr]
        await asyncio.gather(*(self._informers.pop(selection).stop() for selection in gone))

    async def discard(self, informer: Informer) -> None:
        """Stop and forget one informer that is not needed any more."""
        for selection in [selection for selection, held in self._informers.items() if held is informer]:
            del self._informers[selection]
        await informer.stop()

    def retry_now(self) -> None:
        """Let informers that wait after a failure try again at once: the server is back."""
        for informer in self._informers.values():
            informer.retry_now()

    def forget_history(self) -> None:
        """Compare the next list with the cache, object by object: the client leads to another server now."""
        for informer in self._informers.values():
            informer.forget_history()

    async def stop(self) -> None:
        self._started = False
        await cancel_and_wait(*self._delivering)
        await asyncio.gather(*(informer.stop() for informer in self._informers.values()))
