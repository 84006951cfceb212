"""Joining a cluster that the control plane will push to.

In the cluster: two ServiceAccounts with tokens, one that may do everything (by which the control plane works there) and
one without any rights yet (by which it speaks for its users). In the control plane: both tokens as Secrets, and the
Cluster that owns them. What is there already is used as it is, so that joining again after a failure goes on where it
stopped; only the Cluster itself must be new, and the Secrets hold the tokens of now: what an earlier attempt left may
be worth nothing any more, or be another cluster's. What is still on its way out, because the cluster has only just
left, is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.cluster_bounds import bounded_text
from karmada.joining import objects
from karmada.joining.objects import ACCOUNT_UID, IMPERSONATOR
from karmada.joining.waiting import wait_for
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import AlreadyExists, ApiError, BadRequest, NotFound, UserError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import ACCOUNTS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import cancel_and_wait, with_timeout
from karmada.kube.runtime.writes import delete_if_exists

TOKEN_SECONDS: Final = 30.0
_GONE: Final[Obj] = {}
Progress: TypeAlias = Callable[[str], None]
T = TypeVar("T")
S = TypeVar("S")


class JoinError(UserError):
    """Why a cluster cannot join, or leave; for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """The name of a cluster that joins, how it is reached, and where it is."""

    name: str
    api_endpoint: str
    namespace: str = well_known.NAMESPACE_CLUSTER
    insecure: bool = False
    proxy_url: str = ""
    provider: str = ""
    region: str = ""
    zones: Sequence[str] = ()

    @classmethod
    def to(cls, config: RestConfig, name: str, **others: Any) -> Joining:
        """Return the way of a kubeconfig."""
        return cls(
            name=name, api_endpoint=config.server, insecure=config.insecure, proxy_url=config.proxy_url, **others
        )


def quiet(_step: str) -> None:
    """Show no progress."""


async def join(
    control: Client,
    member: Client,
    joining: Joining,
    *,
    dry_run: bool = False,
    clock: Clock = SYSTEM,
    progress: Progress = quiet,
) -> Obj | None:
    """Return the new Cluster; None after a dry run, which only checks whether the cluster may join."""
    cluster_id = await cluster_id_of(member)
    await check_unique(control, joining.name, cluster_id)
    progress(f"cluster {joining.name} has the id {cluster_id}, which is new")
    if dry_run:
        return None
    impersonator, account = await prepare_member(member, joining.name, joining.namespace, clock=clock)
    progress("the cluster has the accounts, and tokens for them")
    return await register(control, joining, cluster_id, impersonator, account, clock=clock, progress=progress)


async def cluster_id_of(member: Client) -> str:
    """Return the unique identity of a cluster."""
    return bounded_text(meta.uid(await member.get(NAMESPACES, "kube-system")))


async def check_unique(control: Client, name: str, cluster_id: str, *, restarting: bool = False) -> None:
    """JoinError when a cluster of this name, or this very cluster, is there already.

    `restarting`: it may be there under this very name.
    """
    for cluster in await _possibly_same(control, name, cluster_id):
        same = cluster["spec"].get("id") == cluster_id, meta.name(cluster) == name
        if any(same) and not (restarting and all(same)):
            raise JoinError(f"the cluster ID {cluster_id} or the cluster name {name} has been registered")


async def _possibly_same(control: Client, name: str, cluster_id: str) -> list[Obj]:
    """Clusters with this name or id; of servers that cannot select by the id, all: a thousand are 25 MB."""
    try:
        by_id = (await control.list_all(Cluster.gvr, field_selector=f"spec.id={cluster_id}")).items
    except BadRequest:
        return (await control.list_all(Cluster.gvr)).items
    return [*by_id, *(await control.list_all(Cluster.gvr, field_selector=f"metadata.name={name}")).items]


# in the cluster


async def prepare_member(member: Client, cluster: str, namespace: str, *, clock: Clock = SYSTEM) -> tuple[Obj, Obj]:
    """Return the Secrets with the tokens: to impersonate with, and to work with."""
    await ensure_namespace(member, namespace, clock)
    return await _both(
        impersonator_token(member, cluster, namespace, clock=clock),
        account_token(member, cluster, namespace, clock=clock),
    )


async def account_token(member: Client, cluster: str, namespace: str, *, clock: Clock = SYSTEM) -> Obj:
    """Return the Secret with the token of the account that may do everything."""
    account = well_known.service_account_name(cluster)

    async def working() -> Obj:
        why = f"failed to get serviceAccount secret from cluster({cluster}), error: "
        return await _account_with_token(member, namespace, account, why, clock)

    async def rights() -> None:
        role = well_known.cluster_role_name(account)
        await ensure(member, CLUSTER_ROLES, objects.everything_role(role))
        await ensure(member, CLUSTER_ROLE_BINDINGS, objects.role_binding(role, namespace, account))

    secret, _ = await _both(working(), rights())
    return secret


async def impersonator_token(member: Client, cluster: str, namespace: str, *, clock: Clock = SYSTEM) -> Obj:
    """Return the Secret with the token of the account that the control plane impersonates users with."""
    why = f"failed to get serviceAccount secret for impersonation from cluster({cluster}), error: "
    return await _account_with_token(member, namespace, IMPERSONATOR, why, clock)


async def _account_with_token(member: Client, namespace: str, name: str, why: str, clock: Clock) -> Obj:
    account = await ensure(member, ACCOUNTS, objects.service_account(namespace, name))
    try:
        return await with_timeout(clock, _token_of(member, account, clock), TOKEN_SECONDS)
    except (ApiError, ConnectionFailed, TimeoutError) as error:
        raise JoinError(f"{why}{error}") from error


async def _token_of(member: Client, account: Obj, clock: Clock) -> Obj:
    """Return the Secret of an account, once its token is in.

    One of an earlier account of that name is replaced.
    """
    name, namespace, uid = meta.name(account), meta.namespace(account), meta.uid(account)

    def filled_or_gone(secret: Obj | None) -> Obj | None:
        if secret is None:
            return _GONE
        ours = meta.annotations(secret).get(ACCOUNT_UID) in (None, uid)
        return secret if ours and (secret.get("data") or {}).get("token") else None

    while True:
        await ensure(member, SECRETS, objects.token_secret(namespace, name))
        secret = await wait_for(member, SECRETS, name, namespace, filled_or_gone, clock=clock, seconds=TOKEN_SECONDS)
        if secret is not _GONE:
            return secret


async def ensure_namespace(client: Client, name: str, clock: Clock) -> None:
    found = await ensure(client, NAMESPACES, objects.namespace(name))
    if not meta.is_deleting(found):
        return

    def gone(namespace: Obj | None) -> bool | None:
        return True if namespace is None or not meta.is_deleting(namespace) else None

    try:
        await wait_for(client, NAMESPACES, name, "", gone, clock=clock, seconds=TOKEN_SECONDS)
    except TimeoutError as error:
        raise JoinError(f"namespace {name} is still being deleted after {TOKEN_SECONDS:g}s") from error
    await ensure(client, NAMESPACES, objects.namespace(name))


# in the control plane


async def register(
    control: Client,
    joining: Joining,
    cluster_id: str,
    impersonator: Obj,
    account: Obj,
    *,
    clock: Clock = SYSTEM,
    progress: Progress = quiet,
) -> Obj:
    """Return the Cluster, made together with its Secrets from those of the member."""
    await ensure_namespace(control, joining.namespace, clock)
    name, where = joining.name, joining.namespace
    token = {"token": impersonator["data"]["token"]}
    whole = {"caBundle": account["data"].get("ca.crt", ""), "token": account["data"]["token"]}
    spoken_for = objects.credentials(where, well_known.impersonator_secret_name(name), token)
    credentials = objects.credentials(where, name, whole)
    await _both(_ensure_credentials(control, spoken_for), _ensure_credentials(control, credentials))
    progress(f"the control plane has its credentials, in namespace {where}")
    try:
        cluster = await control.create(Cluster.gvr, cluster_of(joining, cluster_id, secrets=(credentials, spoken_for)))
    except AlreadyExists as error:
        raise JoinError(f"cluster({name}) already exist") from error
    await _both(_own(control, cluster, spoken_for), _own(control, cluster, credentials))
    return cluster


async def _ensure_credentials(control: Client, wanted: Obj) -> Obj:
    """Return the Secret; no Cluster exists yet, so one that exists is of a Cluster that is gone or a failed attempt."""
    found = await ensure(control, SECRETS, wanted)
    if meta.owner_references(found):
        await delete_if_exists(control, SECRETS, meta.name(found), meta.namespace(found), uid=meta.uid(found))
        found = await ensure(control, SECRETS, wanted)
    if found.get("data") == wanted["data"]:
        return found
    whole = [{"op": "add", "path": "/data", "value": wanted["data"]}]
    return await control.patch(SECRETS, meta.name(found), meta.namespace(found), whole, type="json")


def cluster_of(
    joining: Joining, cluster_id: str, *, mode: str = "Push", secrets: tuple[Obj | None, Obj | None] = (None, None)
) -> Obj:
    """Return the Cluster; `secrets` are those of the control plane to work with and to impersonate with."""
    account, impersonator = secrets
    optional = {
        "apiEndpoint": joining.api_endpoint,
        "secretRef": _reference(account),
        "impersonatorSecretRef": _reference(impersonator),
        "insecureSkipTLSVerification": joining.insecure,
        "proxyURL": joining.proxy_url,
        "provider": joining.provider,
        "region": joining.region,
        "zones": list(joining.zones),
    }
    spec = {"syncMode": mode, "id": cluster_id} | {field: value for field, value in optional.items() if value}
    return {
        "apiVersion": Cluster.gvk.api_version,
        "kind": Cluster.gvk.kind,
        "metadata": {"name": joining.name},
        "spec": spec,
    }


def _reference(secret: Obj | None) -> Obj | None:
    return None if secret is None else {"namespace": meta.namespace(secret), "name": meta.name(secret)}


async def _own(control: Client, cluster: Obj, secret: Obj) -> Obj:
    """Have the Secret go when the Cluster goes. Who has made the Cluster also has the last word on what is in it."""
    patch = {"metadata": {"ownerReferences": [meta.make_owner(cluster)]}, "data": secret["data"]}
    return await control.patch(SECRETS, meta.name(secret), meta.namespace(secret), patch)


# both


async def ensure(client: Client, kind: GVR, obj: Obj) -> Obj:
    """Return the object as it is there, or else as it is given; one that exists is never changed."""
    try:
        return await client.get(kind, meta.name(obj), meta.namespace(obj))
    except NotFound:
        pass
    try:
        return await client.create(kind, obj)
    except AlreadyExists:
        return await client.get(kind, meta.name(obj), meta.namespace(obj))


async def _both(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, S]) -> tuple[T, S]:
    """Two things at the same time; when one fails, the other is given up."""
    tasks = (asyncio.create_task(one), asyncio.create_task(other))
    try:
        return await asyncio.gather(*tasks)
    finally:
        await cancel_and_wait(*(task for task in tasks if not task.done()))
