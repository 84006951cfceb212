"""Keeps the quarantine of a process and the ConfigMaps that show it alike (see api/quarantine).

A process makes the ConfigMap of what hung its loop, with an event and, where the kind has conditions, a condition of
the object that is left alone. Other replicas learn of it by the ConfigMap. Whoever releases a key, since its object
has changed, deletes the ConfigMap; who deletes the ConfigMap releases the key, in all replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from karmada.api.autoscaling import FederatedHPA
from karmada.api.cluster import Cluster
from karmada.api.networking import MultiClusterIngress, MultiClusterService
from karmada.api.quarantine import CONDITION, LABEL, NAMESPACE, from_map, key_of_map, to_map
from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.kube.objects import meta
from karmada.kube.objects.errors import AlreadyExists, ApiError, Conflict
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Enqueue, Reconciler, Watch
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.quarantine import QUARANTINE, Entry
from karmada.kube.runtime.writes import delete_if_exists, get_if_exists, set_status

if TYPE_CHECKING:
    from karmada.controllers.context import Context

NAME: Final = "quarantine"
QUARANTINED: Final = "Quarantined"
RELEASED: Final = "ReleasedFromQuarantine"
_REASON: Final = "EventLoopHung"
_WITH_CONDITIONS: Final = {
    kind.gvk: kind.gvr
    for kind in (
        ResourceBinding, ClusterResourceBinding, Work, Cluster, FederatedHPA, MultiClusterService, MultiClusterIngress
    )
}  # fmt: skip
log = get_logger(NAME)


class QuarantineKeeper(Reconciler):
    """A reconciler of the ConfigMaps, on every replica."""

    name = NAME
    options = ControllerOptions(needs_leader=False)
    watches = (Watch(CONFIG_MAPS, namespace=NAMESPACE, label_selector=LABEL),)

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder(NAME)
        self._maps = context.informers.of(CONFIG_MAPS, NAMESPACE, label_selector=LABEL)
        self._released: dict[Key, Entry] = {}
        """What was released here and has its ConfigMap still."""
        self._end: Callable[[], None] = lambda: None

    def attach(self, add: Enqueue) -> None:
        def changed(entry: Entry, added: bool) -> None:
            key = key_of_map(entry)
            if added:
                self._released.pop(key, None)
            else:
                self._released[key] = entry
            add(key)

        self._end = QUARANTINE.follow(changed)
        for entry in QUARANTINE.entries():
            add(key_of_map(entry))

    async def stop(self) -> None:
        self._end()

    async def reconcile(self, key: Key) -> None:
        held = {key_of_map(entry): entry for entry in QUARANTINE.entries()}.get(key)
        shown = self._maps.get(key)
        if held is None:
            await self._hold_or_hide(key, shown)
        elif shown is not None:
            QUARANTINE.note_published(held)
        elif held.published:
            QUARANTINE.release(held)
        else:
            await self._show(held)

    async def _hold_or_hide(self, key: Key, shown: Obj | None) -> None:
        """Hold what another replica shows; hide what was released."""
        released = self._released.get(key)
        if released is not None:
            await self._mark(released, None)
            await delete_if_exists(self._client, CONFIG_MAPS, key.name, key.namespace)
            if self._released.pop(key, None) is not None and shown is not None:
                self._recorder.event(_subject(released), NORMAL, RELEASED, f"{_words(released)} is handled again")
        elif shown is not None:
            entry = from_map(shown)
            if entry is not None:
                QUARANTINE.add(msgspec.structs.replace(entry, published=True))

    async def _show(self, entry: Entry) -> None:
        message = (
            f"{_words(entry)} is left alone until it changes: it held the event loop for {entry.seconds:g}s "
            f"and the process was ended; karmadactl quarantine release {entry.controller} '{entry.key}' tries it again"
        )
        try:
            await self._client.create(CONFIG_MAPS, to_map(entry))
        except AlreadyExists:
            pass  # of an earlier try, or the other replicas had the same
        else:
            self._recorder.event(_subject(entry), WARNING, QUARANTINED, message)
        await self._mark(entry, {"type": CONDITION, "status": "True", "reason": _REASON, "message": message})
        QUARANTINE.note_published(entry)

    async def _mark(self, entry: Entry, condition: Obj | None) -> None:
        """Give the object the condition, or take it away, if its kind has conditions."""
        kind = _WITH_CONDITIONS.get(gvk_of(entry.object)) if entry.object else None
        if kind is None:
            return
        try:
            obj = await get_if_exists(self._client, kind, meta.name(entry.object), meta.namespace(entry.object))
            if obj is None:
                return
            status = obj.get("status") or {}
            others = [one for one in status.get("conditions") or [] if one.get("type") != CONDITION]
            now = self._clock.now()
            await set_status(
                self._client,
                kind,
                obj,
                {**status, "conditions": others if condition is None else meta.set_condition(others, condition, now)},
            )
        except Conflict:
            raise
        except ApiError as error:
            log.error("The condition cannot be written", error, controller=entry.controller, key=entry.key)


def _subject(entry: Entry) -> Obj:
    """Return what events are about: the object, or the ConfigMap if that is not known."""
    return entry.object or to_map(entry)


def _words(entry: Entry) -> str:
    return f"{entry.key} of the controller {entry.controller}"
