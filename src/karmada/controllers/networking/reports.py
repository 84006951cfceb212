"""Conditions of MultiClusterServices and MultiClusterIngresses."""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import retry_on_conflict, set_status


async def report_condition(client: Client, clock: Clock, gvr: GVR, obj: Obj, condition: Obj) -> bool:
    """Have this condition ({type, status, reason, message}) in the status of an object; whether it changed."""

    async def once() -> bool:
        try:
            current = await client.get(gvr, meta.name(obj), meta.namespace(obj))
        except NotFound:
            return False
        status = current.get("status") or {}
        conditions = meta.set_condition(status.get("conditions"), condition, clock.now())
        written = await set_status(client, gvr, current, {**status, "conditions": conditions})
        return written.outcome != "unchanged"

    return await retry_on_conflict(once, clock=clock)
