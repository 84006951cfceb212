"""The EndpointSlices of one manager: finding those of a Service, and making them what a plan says.

Only slices that carry the manager's label are managed; other controllers that make slices for the same Service (another
controller, a user, a multi-cluster service) keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from karmada.kube.objects.gvrs import SLICES
from karmada.kube.objects.meta import is_deleting, make_owner
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.service_pods import TRIGGER_TIME
from karmada.kube.sim.controllers.slices import (
    MANAGED_BY,
    SERVICE_NAME,
    Content,
    Group,
    Plan,
    endpoints_of,
    plan,
    ports_of,
)

_BY_SERVICE = "service"


def service_key(obj: Obj) -> tuple[Key, ...]:
    """Return the Service that a slice is for."""
    metadata = obj["metadata"]
    name = (metadata.get("labels") or {}).get(SERVICE_NAME)
    return (Key(metadata["namespace"], name),) if name else ()


def index_by_service(obj: Obj) -> Iterable[str]:
    return [str(key) for key in service_key(obj)]


def shape(obj: Obj) -> tuple[object, ...]:
    """Return everything about a slice that its maker decides."""
    metadata = obj["metadata"]
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != TRIGGER_TIME}
    owners = metadata.get("ownerReferences")
    return (metadata.get("labels"), annotations, owners, ports_of(obj), endpoints_of(obj))


class SliceStore:
    def __init__(self, context: Context, manager: str) -> None:
        self._context = context
        self._client = context.client()
        self._manager = manager
        selector = f"{MANAGED_BY}={manager}"
        self.watch = Watch(SLICES, when=self._changed, map_to=service_key, label_selector=selector)
        self._slices = context.informers.of(SLICES, label_selector=selector, indexes={_BY_SERVICE: index_by_service})

    def _changed(self, old: Obj | None, new: Obj | None) -> bool:
        return old is None or new is None or is_deleting(new) or shape(old) != shape(new)

    def of(self, service: Key) -> list[Obj]:
        found = [obj for obj in self._slices.by_index(_BY_SERVICE, str(service)) if not is_deleting(obj)]
        return sorted(found, key=lambda obj: str(obj["metadata"]["name"]))

    async def converge(
        self,
        service: Key,
        owner: Obj,
        groups: Sequence[Group],
        *,
        families: Iterable[str] = (),
        labels: dict[str, str],
        annotations: dict[str, str] | None = None,
        trigger: str = "",
    ) -> None:
        """Make the Service's slices hold these groups, owned by `owner`.

        Without `annotations` a slice keeps those it has; `trigger` is added to every write.
        """
        stamp: Obj = {"namespace": service.namespace, "ownerReferences": [make_owner(owner)]}
        stamp["labels"] = {**labels, SERVICE_NAME: service.name, MANAGED_BY: self._manager}
        if annotations is not None:
            stamp["annotations"] = annotations
        written = await self._write(plan(self.of(service), groups, families), service, stamp, trigger)
        await self._context.until_seen(self._slices, written)

    async def _write(self, wanted: Plan, service: Key, stamp: Obj, trigger: str) -> list[Obj]:
        written = []
        for content in wanted.contents:
            obj = _built(service, content, stamp, trigger)
            if content.slice is None:
                written.append(await self._client.create(SLICES, obj))
            elif shape(obj) != shape(content.slice):
                written.append(await self._client.update(SLICES, obj))
            else:
                continue
            self._slices.wrote(written[-1])
        await self._delete(wanted.surplus)
        return written

    async def remove(self, service: Key) -> None:
        await self._delete(self.of(service))

    async def _delete(self, slices: Iterable[Obj]) -> None:
        for obj in slices:
            metadata = obj["metadata"]
            uid = metadata["uid"]
            await delete_if_exists(self._client, SLICES, metadata["name"], metadata["namespace"], uid=uid)


def _built(service: Key, content: Content, stamp: Obj, trigger: str) -> Obj:
    known = {"generateName": f"{service.name}-"} if content.slice is None else content.slice["metadata"]
    metadata = {**known, **stamp}
    if trigger:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), TRIGGER_TIME: trigger}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": content.address_type,
        "ports": content.ports,
        "endpoints": content.endpoints,
    }
