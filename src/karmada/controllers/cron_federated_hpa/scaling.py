"""What a rule of a CronFederatedHPA does: sets the bounds of a FederatedHPA, or the replicas of a workload."""

from __future__ import annotations

from karmada.api.autoscaling import V1ALPHA1
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import retry_on_conflict

_FEDERATED_HPA = "FederatedHPA"
_BOUNDS = (("targetMaxReplicas", "maxReplicas"), ("targetMinReplicas", "minReplicas"))


async def scale(client: Client, clock: Clock, autoscaler: Obj, rule: Obj) -> None:
    """Scale the target of a CronFederatedHPA, which is in its namespace. Writes nothing where nothing differs."""
    reference, namespace = autoscaler["spec"]["scaleTargetRef"], meta.namespace(autoscaler)
    api_version, kind = reference.get("apiVersion") or "v1", reference["kind"]
    if api_version == V1ALPHA1 and kind != _FEDERATED_HPA:
        key = f"{namespace}/{meta.name(autoscaler)}"
        raise ApiError(f"CronFederatedHPA({key}) do not support scale target {api_version}/{kind}")
    resource = await client.resource(GVK.parse(api_version, kind))

    async def once() -> None:
        if api_version == V1ALPHA1:
            await _set(client, resource, reference["name"], namespace, _bounds(rule))
        else:
            await _set(client, resource, reference["name"], namespace, _replicas(rule, kind), subresource="scale")

    await retry_on_conflict(once, clock=clock)


def _bounds(rule: Obj) -> Obj:
    return {field: rule[key] for key, field in _BOUNDS if rule.get(key) is not None}


def _replicas(rule: Obj, kind: str) -> Obj:
    if rule.get("targetReplicas") is None:
        raise ApiError(f"rule {rule['name']}: targetReplicas is required to scale {kind}")
    return {"replicas": rule["targetReplicas"]}


async def _set(client: Client, resource: GVR, name: str, namespace: str, fields: Obj, subresource: str = "") -> None:
    """Set the replicas of a Scale; 0 differs from a missing field only in form."""
    current = await client.get(resource, name, namespace, subresource=subresource)
    spec = current.get("spec") or {}
    if {"replicas": 0, **spec, **fields} != {"replicas": 0, **spec}:
        await client.update(resource, {**current, "spec": {**spec, **fields}}, subresource=subresource)
