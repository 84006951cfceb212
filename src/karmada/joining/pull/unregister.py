"""Taking a cluster out that an agent works for.

First its Works go, one by one, while the agent still has the right to take their objects out of the cluster: with the
Cluster its execution namespace is deleted, and in it the agent's role. Then the Cluster is deleted, and at last what
registering created: the agent's rights in the control plane, if the caller may delete them, and the agent itself.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from karmada.api import well_known
from karmada.api.work import Work
from karmada.joining.join import JoinError, Progress, quiet
from karmada.joining.objects import IMPERSONATOR
from karmada.joining.pull.objects import AGENT_ACCOUNT, KUBECONFIG_SECRET, Placed, agent_lease, agent_rights
from karmada.joining.unjoin import UnknownCluster, cluster_to_remove, delete_cluster
from karmada.kube.client.client import Client
from karmada.kube.client.config import RestConfig
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError
from karmada.kube.kinds.signing_requests import requested_user
from karmada.kube.objects import meta
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import (
    ACCOUNTS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CSRS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
)
from karmada.kube.objects.times import format_duration
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.runtime.writes import delete_if_exists

WAIT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.5
_KUBECONFIG_FLAG, _CONTEXT_FLAG, _NAME_FLAG = "--karmada-kubeconfig=", "--karmada-context=", "--cluster-name="


# the control plane, as the agent reaches it


async def control_plane_of(member: Client, namespace: str, agent: str) -> RestConfig:
    """From the Secret with the kubeconfig that the agent's Deployment mounts."""
    try:
        deployment = await member.get(DEPLOYMENTS, agent, namespace)
    except NotFound as error:
        raise JoinError(f"failed to get deployment {agent} in member cluster: {error}") from error
    pod = deployment["spec"]["template"]["spec"]
    path = PurePosixPath(_flag(pod, _KUBECONFIG_FLAG))
    secret = _mounted_secret(pod, path)
    if not secret:
        raise JoinError(
            f"failed to get karmada config from {agent} deployment: failed to get secret name of karmada agent config"
        )
    try:
        data = (await member.get(SECRETS, secret, namespace)).get("data") or {}
        text = base64.b64decode(data.get(path.name, ""))
        if not text:
            raise JoinError(f"empty data, secretName: {secret}, keyName: {path.name}")
        return Kubeconfig.parse(text).resolve(_flag(pod, _CONTEXT_FLAG))
    except NotFound as error:
        raise JoinError(f"failed to get the secret which stores the karmada agent config: {error}") from error
    except (KubeconfigError, binascii.Error) as error:
        raise JoinError(f"the kubeconfig in secret {namespace}/{secret} cannot be used: {error}") from error


def _flag(pod: Obj, flag: str) -> str:
    """Return a flag of the first container; the last one counts."""
    container = pod["containers"][0]
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return next((word.removeprefix(flag) for word in reversed(words) if word.startswith(flag)), "")


def _mounted_secret(pod: Obj, path: PurePosixPath) -> str:
    mounts = pod["containers"][0].get("volumeMounts") or ()
    volume = next((m["name"] for m in mounts if PurePosixPath(m["mountPath"]) == path.parent), None)
    found: Obj = next((v for v in pod.get("volumes") or () if v["name"] == volume), {})
    return str((found.get("secret") or {}).get("secretName") or "")


# leaving


async def unregister(
    control: Client,
    member: Client,
    name: str,
    *,
    with_rights: bool,
    namespace: str = well_known.NAMESPACE_SYSTEM,
    agent: str = well_known.AGENT,
    cluster_namespace: str = well_known.NAMESPACE_CLUSTER,
    wait: float = WAIT_SECONDS,
    dry_run: bool = False,
    clock: Clock = SYSTEM,
    progress: Progress = quiet,
) -> list[Placed]:
    """Return what is left in the control plane: the agent's rights, unless the caller may delete them (`with_rights`).

    A Cluster that is gone already, or that its agent never created, is no error if the agent is still there.
    """
    try:
        cluster: Obj | None = await cluster_to_remove(control, name, "Pull")
    except UnknownCluster:
        if not await _is_agent_of(member, namespace, agent, name):
            raise
        cluster = None
    if dry_run:
        return []
    if cluster is not None:
        await _delete(control, cluster, wait, clock, progress)
    left = [*agent_rights(name, cluster_namespace), agent_lease(name, namespace)]
    if with_rights:
        for placed in left:
            await delete_if_exists(control, placed.gvr, placed.name, placed.namespace)
        await _delete_requests(control, well_known.agent_user(name))
        left = []
    for gvr, found, where in _member_objects(name, namespace, agent, cluster_namespace):
        await delete_if_exists(member, gvr, found, where)
    progress(f"cluster {name} has nothing of the control plane any more")
    return left


async def _is_agent_of(member: Client, namespace: str, agent: str, cluster: str) -> bool:
    try:
        deployment = await member.get(DEPLOYMENTS, agent, namespace)
    except NotFound:
        return False
    return _flag(deployment["spec"]["template"]["spec"], _NAME_FLAG) == cluster


async def _delete(control: Client, cluster: Obj, wait: float, clock: Clock, progress: Progress) -> None:
    """Delete the Works, then the Cluster, within `wait` seconds."""
    name, started = meta.name(cluster), clock.monotonic()
    await _delete_works(control, name, wait, clock)
    progress(f"the works of cluster {name} are deleted, and what they had created in it")
    await delete_cluster(control, cluster, max(1.0, wait - (clock.monotonic() - started)), clock=clock)
    progress(f"cluster {name} is no longer known to the control plane")


async def _delete_works(control: Client, name: str, wait: float, clock: Clock) -> None:
    """Delete the Works that are there now; others that appear meanwhile are deleted with the Cluster."""
    space = well_known.execution_namespace(name)
    works = (await control.list_all(Work.gvr, space)).items
    for work in works:
        await delete_if_exists(control, Work.gvr, meta.name(work), space, uid=meta.uid(work))
    waited_for = {meta.uid(work) for work in works}

    async def gone() -> None:
        while waited_for.intersection(meta.uid(work) for work in (await control.list_all(Work.gvr, space)).items):
            await clock.sleep(_POLL_SECONDS)

    try:
        await with_timeout(clock, gone(), wait)
    except TimeoutError:
        raise JoinError(
            f"the works of cluster {name} are not deleted after {format_duration(wait)}: is its agent running? "
            f"Try again with a longer --wait, or give its resources up with 'kubectl delete cluster {name}'"
        ) from None


async def _delete_requests(control: Client, user: str) -> None:
    """Delete the certificate requests of an agent: its own, and the one it was registered with."""
    for request in (await control.list_all(CSRS)).items:
        if request["spec"].get("username") == user or requested_user(request) == user:
            await delete_if_exists(control, CSRS, meta.name(request), uid=meta.uid(request))


def _member_objects(cluster: str, namespace: str, agent: str, where: str) -> Iterator[tuple[GVR, str, str]]:
    """Yield the accounts that the control plane used, then the agent."""
    account = well_known.service_account_name(cluster)
    role = well_known.cluster_role_name(account)
    yield ACCOUNTS, account, where
    yield CLUSTER_ROLES, role, ""
    yield CLUSTER_ROLE_BINDINGS, role, ""
    yield SECRETS, account, where
    yield ACCOUNTS, IMPERSONATOR, where
    yield SECRETS, IMPERSONATOR, where
    yield NAMESPACES, where, ""
    yield DEPLOYMENTS, agent, namespace
    yield ACCOUNTS, AGENT_ACCOUNT, namespace
    yield CLUSTER_ROLES, well_known.AGENT, ""
    yield CLUSTER_ROLE_BINDINGS, well_known.AGENT, ""
    yield SECRETS, KUBECONFIG_SECRET, namespace
