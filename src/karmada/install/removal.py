"""Removing an installation from the host cluster: everything that has its label, and the label of its node.

The state stays (claims and folders), unless the namespace goes as a whole: whoever removes a control plane by mistake
can install it again with its data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from karmada.api import well_known
from karmada.install.names import ETCD_NODE
from karmada.install.options import InstallError
from karmada.install.rights import Right, check_rights
from karmada.install.waiting import until
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import (
    ACCOUNTS,
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
)
from karmada.kube.objects.times import format_duration
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import delete_if_exists, get_if_exists

_KINDS: Final = (
    (DEPLOYMENTS, 'delete deployment "{}"'),
    (STATEFUL_SETS, 'delete StatefulSet: "{}"'),
    (SERVICES, 'delete Service "{}"'),
    (SECRETS, 'delete Secrets "{}"'),
    (CONFIG_MAPS, 'delete ConfigMap "{}"'),
    (ACCOUNTS, 'delete ServiceAccount "{}"'),
)
"""With the line that reports each."""
ADDONS: Final = ("karmada-descheduler", "karmada-metrics-adapter", "karmada-search", "karmada-dashboard")
ESTIMATOR: Final = "karmada-scheduler-estimator-"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    namespace: str
    purge_namespace: bool = False
    addons: bool = False
    """Addons, too, which have no label of an installation."""
    dry_run: bool = False
    seconds: float = 120.0
    """How long to wait until pods, and the namespace, are gone."""


def needed(removal: Removal) -> list[Right]:
    """Return what the user must be allowed to do, checked before anything is removed."""
    kinds = ("deployments.apps", "statefulsets.apps", "services", "secrets", "configmaps", "serviceaccounts")
    return [
        Right("list", "nodes"),
        Right("delete", "namespaces")
        if removal.purge_namespace
        else Right("list", "persistentvolumeclaims", removal.namespace),
        *(Right(verb, kind, removal.namespace) for kind in kinds for verb in ("list", "delete")),
        Right("list", "pods", removal.namespace),
    ]


async def remove(client: Client, removal: Removal, say: Say, clock: Clock = SYSTEM) -> bool:
    """Return whether anything was there.

    NotFound when there is no such namespace; InstallError when rights are missing or something does not go away.
    """
    await client.get(NAMESPACES, removal.namespace)
    await check_rights(client, needed(removal))
    nodes = (await client.list_all(NODES, label_selector=ETCD_NODE)).items
    if nodes:
        await check_rights(client, [Right("patch", "nodes")])
    addons = _objects_of(await addons_of(client, removal.namespace)) if removal.addons else frozenset()
    chosen = [
        (kind, line, obj) for kind, line in _KINDS for obj in await _of_installation(client, kind, removal, addons)
    ]
    for kind, line, obj in chosen:
        name = obj["metadata"]["name"]
        say(line.format(name))
        if not removal.dry_run:
            await delete_if_exists(client, kind, name, removal.namespace, propagation="Background")
    if removal.purge_namespace:
        say(f'delete Namespace "{removal.namespace}"')
        if not removal.dry_run:
            await delete_if_exists(client, NAMESPACES, removal.namespace, propagation="Background")
    await _unlabel_nodes(client, nodes, removal, say)
    if not removal.dry_run:
        await _until_gone(
            client, removal, [obj for kind, _, obj in chosen if kind in (DEPLOYMENTS, STATEFUL_SETS)], clock
        )
    return bool(chosen) or removal.purge_namespace


async def _of_installation(client: Client, kind: GVR, removal: Removal, addons: frozenset[str]) -> list[Obj]:
    found = (await client.list_all(kind, removal.namespace)).items
    return [obj for obj in found if _is_ours(obj) or obj["metadata"]["name"] in addons]


def _is_ours(obj: Obj) -> bool:
    return well_known.BOOTSTRAPPING in (obj["metadata"].get("labels") or {})


async def addons_of(client: Client, namespace: str) -> list[str]:
    """Return the Deployments of addons, by their names: also those that Karmada's own command installed."""
    names = [obj["metadata"]["name"] for obj in (await client.list_all(DEPLOYMENTS, namespace)).items]
    return [name for name in names if name in ADDONS or name.startswith(ESTIMATOR)]


def _objects_of(addons: Collection[str]) -> frozenset[str]:
    """Return the objects of an addon: they have its name, the kubeconfig of an estimator that of the member."""
    members = (name.removeprefix(ESTIMATOR) for name in addons if name.startswith(ESTIMATOR))
    return frozenset((*addons, *(f"{member}-kubeconfig" for member in members)))


async def _unlabel_nodes(client: Client, nodes: list[Obj], removal: Removal, say: Say) -> None:
    if not nodes:
        say(f"node not found by label {ETCD_NODE}")
    for node in nodes:
        name = node["metadata"]["name"]
        say(f'remove node "{name}" labels "{ETCD_NODE}"')
        if not removal.dry_run:
            labels = {key: None for key in node["metadata"]["labels"] if ETCD_NODE in key}
            await client.patch(NODES, name, "", {"metadata": {"labels": labels}}, type="merge")


async def _until_gone(client: Client, removal: Removal, workloads: list[Obj], clock: Clock) -> None:
    """Until pods have ended, so that a new installation finds their ports and volumes free."""
    apps = sorted({obj["spec"]["selector"]["matchLabels"].get("app", "") for obj in workloads} - {""})

    async def look() -> str:
        selector = f"app in ({','.join(apps)})" if apps else ""
        left = (await client.list_all(PODS, removal.namespace, label_selector=selector)).items if apps else []
        if left:
            return f"{len(left)} pods are still there, such as {left[0]['metadata']['name']}"
        if not removal.purge_namespace:
            return ""
        if await get_if_exists(client, NAMESPACES, removal.namespace) is None:
            return ""
        return f"namespace {removal.namespace} is still there"

    awaited = await until(look, removal.seconds, clock, lambda _text: None)
    if awaited:
        raise InstallError(f"not everything is gone after {format_duration(removal.seconds)}: {awaited}")


async def kept_claims(client: Client, namespace: str) -> list[str]:
    """Return the claims with the state, which stay."""
    found = (await client.list_all(CLAIMS, namespace, label_selector=well_known.BOOTSTRAPPING)).items
    return [obj["metadata"]["name"] for obj in found]
