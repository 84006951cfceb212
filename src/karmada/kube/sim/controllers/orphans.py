"""Objects without a controller, and the workloads that may adopt them.

A workload may adopt pods (or revisions) of its namespace that its selector matches and that have no controller. Neither
side is scanned to find the other: orphans are indexed by each of their labels, workloads by one label that their
selector matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karmada.kube.objects.meta import controller_of, is_deleting
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Mapper
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.podcontrol import BY_CONTROLLER, index_by_controller, owner_key, selector_of

UNCONTROLLED = "uncontrolled"
BY_SELECTOR = "selector"
_GONE_SECONDS = 30.0


def index_uncontrolled(obj: Obj) -> Iterable[str]:
    """Objects without a controller, by each of their labels."""
    return () if controller_of(obj) is not None else _label_values(obj)


def index_by_selector(workload: Obj) -> Iterable[str]:
    """Return a workload, by one label that everything it selects has."""
    return (_selector_value(workload),)


def _label_values(obj: Obj) -> list[str]:
    metadata = obj["metadata"]
    space = metadata.get("namespace", "")
    return [f"{space}/", *(f"{space}/{key}={value}" for key, value in (metadata.get("labels") or {}).items())]


def _selector_value(workload: Obj) -> str:
    """Return one of the values that `_label_values` gives for whatever the workload selects."""
    selector = workload["spec"].get("selector") or {}
    pairs = selector if workload["kind"] == "ReplicationController" else selector.get("matchLabels")
    space = workload["metadata"].get("namespace", "")
    if not pairs:
        return f"{space}/"
    key = min(pairs)
    return f"{space}/{key}={pairs[key]}"


CLAIM_INDEXES = {BY_CONTROLLER: index_by_controller, UNCONTROLLED: index_uncontrolled}
"""The indexes that `candidates` needs."""


def candidates(informer: Informer, owner: Obj) -> list[Obj]:
    """Return what the owner controls, and what it may adopt."""
    metadata = owner["metadata"]
    own = informer.by_index(BY_CONTROLLER, metadata["uid"])
    return own + informer.by_index(UNCONTROLLED, _selector_value(owner))


def workload_keys(kind: str, workloads: Informer) -> Mapper:
    """For Watch.map_to: the workload that controls an object or, if none does, those of its namespace that match it."""
    workloads.add_index(BY_SELECTOR, index_by_selector)
    controlling = owner_key(kind)

    def mapped(obj: Obj) -> Iterable[Key]:
        if controller_of(obj) is not None:
            return controlling(obj)
        labels = obj["metadata"].get("labels")
        if not labels or is_deleting(obj):
            return ()
        return [
            key_of(workload)
            for value in _label_values(obj)
            for workload in workloads.by_index(BY_SELECTOR, value)
            if selector_of(workload).matches(labels)
        ]

    return mapped


async def until_ending(context: Context, informer: Informer, deleted: Iterable[Obj]) -> None:
    """Wait until an informer has these objects as deleted or being deleted."""
    await until_each(context, informer, deleted, is_deleting)


async def until_each(
    context: Context, informer: Informer, objects: Iterable[Obj], settled: Callable[[Obj], bool]
) -> None:
    """Wait until each of these objects is gone from an informer, or settled there."""
    waiting = [(key_of(obj), obj["metadata"]["uid"]) for obj in objects]

    def known() -> bool:
        while waiting:
            key, uid = waiting[-1]
            cached = informer.get(key)
            if cached is not None and cached["metadata"]["uid"] == uid and not settled(cached):
                return False
            waiting.pop()
        return True

    if not known():
        await with_timeout(context.clock, informer.until(known), _GONE_SECONDS)
