"""How an agent registers the cluster it runs for, at each of its starts.

In the cluster: the accounts whose tokens are to be reported, as joining makes them. In the control plane: those tokens
as Secrets, and the Cluster in mode Pull. Everything that is there already, from an earlier start, is kept; a Cluster
whose settings differ from the agent's is updated, which the agent's own rights do not allow: then it is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.joining import objects
from karmada.joining.join import (
    Joining,
    account_token,
    check_unique,
    cluster_id_of,
    cluster_of,
    ensure,
    ensure_namespace,
    impersonator_token,
)
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import AlreadyExists, NotFound
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.types import Obj

CREDENTIALS: Final = "KubeCredentials"
IMPERSONATOR: Final = "KubeImpersonator"
EVERYTHING: Final = (CREDENTIALS, IMPERSONATOR)


async def register_own_cluster(
    control: Client,
    member: Client,
    joining: Joining,
    *,
    report: Collection[str] = EVERYTHING,
    clock: Clock = SYSTEM,
) -> Obj:
    """Return the Cluster. JoinError when the name or the cluster is taken; ApiError where rights are missing.

    `report` says which credentials the control plane gets: those to work with, those to impersonate users with.
    """
    cluster_id = await cluster_id_of(member)
    await check_unique(control, joining.name, cluster_id, restarting=True)
    if set(report) & set(EVERYTHING):
        await ensure_namespace(member, joining.namespace, clock)
        await ensure_namespace(control, joining.namespace, clock)
    account = await _account(control, member, joining, clock) if CREDENTIALS in report else None
    impersonator = await _impersonator(control, member, joining, clock) if IMPERSONATOR in report else None
    wanted = cluster_of(joining, cluster_id, mode="Pull", secrets=(account, impersonator))
    cluster = await _created_or_updated(control, wanted)
    for secret in (account, impersonator):
        if secret is not None:
            await _own(control, cluster, secret)
    return cluster


async def _account(control: Client, member: Client, joining: Joining, clock: Clock) -> Obj:
    token = await account_token(member, joining.name, joining.namespace, clock=clock)
    data = {"caBundle": token["data"].get("ca.crt", ""), "token": token["data"]["token"]}
    return await _reported(control, objects.credentials(joining.namespace, joining.name, data))


async def _impersonator(control: Client, member: Client, joining: Joining, clock: Clock) -> Obj:
    token = await impersonator_token(member, joining.name, joining.namespace, clock=clock)
    name = well_known.impersonator_secret_name(joining.name)
    return await _reported(control, objects.credentials(joining.namespace, name, {"token": token["data"]["token"]}))


async def _reported(control: Client, wanted: Obj) -> Obj:
    found = await ensure(control, SECRETS, wanted)
    if found.get("data") == wanted["data"]:
        return found
    return await control.patch(SECRETS, meta.name(wanted), meta.namespace(wanted), {"data": wanted["data"]})


async def _created_or_updated(control: Client, wanted: Obj) -> Obj:
    try:
        current = await control.get(Cluster.gvr, meta.name(wanted))
    except NotFound:
        try:
            return await control.create(Cluster.gvr, wanted)
        except AlreadyExists:  # by another copy of this agent
            current = await control.get(Cluster.gvr, meta.name(wanted))
    spec = current["spec"] | wanted["spec"]
    if spec == current["spec"]:
        return current
    return await control.update(Cluster.gvr, {**current, "spec": spec})


async def _own(control: Client, cluster: Obj, secret: Obj) -> None:
    owner = meta.make_owner(cluster)
    if meta.owner_references(secret) != [owner]:
        patch = {"metadata": {"ownerReferences": [owner]}}
        await control.patch(SECRETS, meta.name(secret), meta.namespace(secret), patch)
