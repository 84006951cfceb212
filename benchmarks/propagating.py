"""Objects on their way from a control plane to its members, made and watched through the API alone.

Everything happens in a namespace of its own, which the control plane brings to its members by itself. What arrives,
changes or goes there is seen by watches of the members, of metadata only, with hardly anything kept of an object, so
that watching costs little and a moment is noticed when it happens.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from benchmarks import objects
from benchmarks.planes import Member, Plane
from karmada.kube.client.client import Client
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.shapes import METADATA, Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists

REQUESTS_AT_ONCE = 64
T = TypeVar("T")
_MARKED = ",".join(f"{key}={value}" for key, value in objects.MARK.items())
_KEPT = ("name", "namespace", "uid", "resourceVersion", "generation")


class Arrivals:
    """What is in one member, of one kind and namespace."""

    def __init__(self, member: Member, kind: GVR, namespace: str) -> None:
        self.member = member
        self._changed: set[str] = set()
        self._namespace = namespace
        self._informer = Informer(member.client, kind, namespace, label_selector=_MARKED, shape=_NAMED)
        self._informer.add_handler(self._on_event)

    def _on_event(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None and new is not None and _generation(old) != _generation(new):
            self._changed.add(new["metadata"]["name"])

    async def start(self) -> None:
        self._informer.start()
        await self._informer.wait_synced()

    async def stop(self) -> None:
        await self._informer.stop()

    async def until_there(self, count: int) -> None:
        await self._informer.until(lambda: len(self._informer) >= count)

    async def until_gone(self) -> None:
        await self._informer.until(lambda: len(self._informer) == 0)

    async def until_has(self, name: str) -> None:
        key = Key(self._namespace, name)
        await self._informer.until(lambda: self._informer.get(key) is not None)

    async def until_changed(self, count: int) -> None:
        """Until the specs of so many objects have changed since `forget_changes`."""
        await self._informer.until(lambda: len(self._changed) >= count)

    def forget_changes(self) -> None:
        self._changed.clear()

    def __str__(self) -> str:
        error = f", watch: {self._informer.last_error}" if self._informer.last_error else ""
        return f"{self.member.name} has {len(self._informer)}, {len(self._changed)} changed{error}"


def _slim(obj: Obj) -> Obj:
    metadata = obj["metadata"]
    return {"metadata": {field: metadata[field] for field in _KEPT if field in metadata}}


_NAMED = Shape("named", _slim, only_metadata=True)


def _generation(obj: Obj) -> int:
    generation: int = obj["metadata"].get("generation", 0)
    return generation


@dataclass(frozen=True)
class Space:
    """A namespace whose objects of one kind go to all members."""

    plane: Plane
    kind: GVR
    namespace: str
    arrivals: Sequence[Arrivals]

    async def make(self, count: int, first: int = 0) -> None:
        """So many objects, as fast as the control plane takes them."""
        new = objects.MAKERS[self.kind]

        async def one(number: int) -> None:
            await self.plane.control.create(self.kind, new(objects.numbered(number), self.namespace))

        await each(range(first, first + count), one)

    async def until_there(self, count: int) -> None:
        await self._everywhere(lambda arrivals: arrivals.until_there(count))

    async def until_has(self, name: str) -> None:
        await self._everywhere(lambda arrivals: arrivals.until_has(name))

    def forget_changes(self) -> None:
        for arrivals in self.arrivals:
            arrivals.forget_changes()

    async def until_changed(self, count: int) -> None:
        await self._everywhere(lambda arrivals: arrivals.until_changed(count))

    async def until_gone(self) -> None:
        await self._everywhere(Arrivals.until_gone)

    async def _everywhere(self, wait: Callable[[Arrivals], Awaitable[None]]) -> None:
        """A wait that is cut short reports its state."""
        try:
            await asyncio.gather(*(wait(arrivals) for arrivals in self.arrivals))
        except asyncio.CancelledError as cut:
            cut.add_note("; ".join(map(str, self.arrivals)))
            raise

    async def expect_images(self, expected: Callable[[str], str]) -> None:
        """That the first object has in each member the image it should have there."""
        for member in self.plane.members:
            found = objects.image_of(await member.client.get(self.kind, objects.numbered(0), self.namespace))
            if found != expected(member.name):
                raise RuntimeError(f"{member.name} has image {found}, not {expected(member.name)}")


@asynccontextmanager
async def space(plane: Plane, kind: GVR, *, overridden: bool = False) -> AsyncIterator[Space]:
    """Cleared away at the end where the control plane lives on."""
    name = f"benchmark-{uuid.uuid4().hex[:8]}"
    await _make_namespace(plane, name)
    await plane.control.create(objects.POLICIES, objects.policy(name, kind, plane.names))
    if overridden:
        await plane.control.create(objects.OVERRIDES, objects.override_policy(name, plane.names))
    found = Space(plane, kind, name, [Arrivals(member, kind, name) for member in plane.members])
    try:
        await asyncio.gather(*(arrivals.start() for arrivals in found.arrivals))
        yield found
        if not plane.ours:
            await _clear(found)
    finally:
        await asyncio.gather(*(arrivals.stop() for arrivals in found.arrivals))


async def _make_namespace(plane: Plane, name: str) -> None:
    """There and in all members."""
    await plane.control.create(objects.NAMESPACES, objects.namespace(name))

    async def arrived(client: Client) -> None:
        informer = Informer(client, objects.NAMESPACES, field_selector=f"metadata.name={name}", shape=METADATA)
        informer.start()
        try:
            await informer.until(lambda: len(informer) > 0)
        finally:
            await informer.stop()

    await asyncio.gather(*(arrived(member.client) for member in plane.members))


async def _clear(space: Space) -> None:
    control = space.plane.control
    left = (await control.list_all(space.kind, space.namespace, label_selector=_MARKED, shape=METADATA)).items

    async def one(obj: Obj) -> None:
        await delete_if_exists(control, space.kind, obj["metadata"]["name"], space.namespace)

    await each(left, one)
    await space.until_gone()
    await delete_if_exists(control, objects.NAMESPACES, space.namespace)


async def each(items: Iterable[T], act: Callable[[T], Awaitable[None]], at_once: int = REQUESTS_AT_ONCE) -> None:
    """`act` on every item, on so many at the same time; the first that fails ends it."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await act(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures
