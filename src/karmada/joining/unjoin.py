"""Taking a cluster out that the control plane pushes to.

The Cluster is deleted, which makes the controllers clean up: its Works, and with them what they put into the cluster.
When that does not come to an end in time, force removes every finalizer that blocks the deletion; what is in the
cluster then stays there. At last the cluster itself is rid of what joining made there, if it can be reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.joining.join import JoinError, Progress, quiet
from karmada.joining.waiting import wait_for
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import ACCOUNTS, CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.runtime.writes import delete_if_exists, remove_finalizer, retry_on_conflict

WAIT_SECONDS: Final = 60.0
_KUBERNETES: Final = "kubernetes"


class UnknownCluster(JoinError):
    """There is no Cluster of the name."""


async def unjoin(
    control: Client,
    name: str,
    *,
    member: Client | None = None,
    namespace: str = well_known.NAMESPACE_CLUSTER,
    wait: float = WAIT_SECONDS,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock = SYSTEM,
    progress: Progress = quiet,
) -> bool:
    """Return whether the deletion had to be forced.

    `member` is the client for removing accounts and RBAC in the cluster.
    """
    cluster = await cluster_to_remove(control, name, "Push")
    if dry_run:
        return False
    forced = False
    try:
        await delete_cluster(control, cluster, wait, clock=clock)
    except JoinError as error:
        if not force:
            raise
        progress(f"{error}; forcing it")
        forced = True
        await _force(control, name, clock, progress)
    progress(f"cluster {name} is no longer known to the control plane")
    if member is not None:
        await clean_up_member(member, name, namespace, wait=wait, force=force, clock=clock, progress=progress)
    return forced


_ELSEWHERE = {
    "Push": "please use command `unregister` if you want to continue unregistering the cluster",
    "Pull": "please use command `unjoin` if you want to continue unjoining the cluster",
}


async def cluster_to_remove(control: Client, name: str, mode: str) -> Obj:
    """Return the Cluster, which must be there and be of the mode that the caller knows how to remove."""
    try:
        cluster = await control.get(Cluster.gvr, name)
    except NotFound as error:
        raise UnknownCluster(f"no cluster object {name} found in karmada control Plane") from error
    found = cluster["spec"].get("syncMode")
    if found != mode:
        raise JoinError(f"cluster {name} is a {found} mode member cluster, {_ELSEWHERE[mode]}")
    return cluster


async def delete_cluster(control: Client, cluster: Obj, wait: float, *, clock: Clock = SYSTEM) -> None:
    """JoinError when it is still there after `wait` seconds."""
    name, uid = meta.name(cluster), meta.uid(cluster)
    try:
        await control.delete(Cluster.gvr, name)
    except NotFound as error:
        raise JoinError(f"no cluster object {name} found in karmada control Plane") from error

    def gone(found: Obj | None) -> bool | None:
        return True if found is None or meta.uid(found) != uid else None

    try:
        await wait_for(control, Cluster.gvr, name, "", gone, clock=clock, seconds=wait)
    except TimeoutError as error:
        raise JoinError(f"timed out waiting for cluster {name} to be deleted, after {wait:g}s") from error


# force


async def _force(control: Client, name: str, clock: Clock, progress: Progress) -> None:
    """Release the Works, their namespace and the Cluster; what fails is reported and left."""
    space = well_known.execution_namespace(name)

    async def works() -> None:
        found = (await control.list_all(Work.gvr, space)).items
        outcomes = await asyncio.gather(
            *(_remove_finalizer(control, Work.gvr, w, well_known.EXECUTION_FINALIZER, clock) for w in found),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                progress(f"the finalizer of a work was not removed: {outcome}")

    async def namespace() -> None:
        await _remove_finalizer(control, NAMESPACES, await control.get(NAMESPACES, space), _KUBERNETES, clock)

    async def cluster() -> None:
        found = await control.get(Cluster.gvr, name)
        await _remove_finalizer(control, Cluster.gvr, found, well_known.CLUSTER_FINALIZER, clock)

    for what, step in ((f"the works in {space}", works), (f"namespace {space}", namespace), ("the cluster", cluster)):
        await _try(step(), f"{what}: finalizer not removed", progress)


async def _remove_finalizer(client: Client, kind: GVR, obj: Obj, finalizer: str, clock: Clock) -> None:
    current: Obj | None = obj

    async def attempt() -> None:
        nonlocal current
        if current is None:
            current = await client.get(kind, meta.name(obj), meta.namespace(obj))
        found, current = current, None
        await remove_finalizer(client, kind, found, finalizer)

    await retry_on_conflict(attempt, clock=clock)


async def _try(work: Awaitable[object], failing: str, progress: Progress) -> None:
    try:
        await work
    except NotFound:
        return
    except (ApiError, ConnectionFailed, TimeoutError) as error:
        progress(f"{failing}: {error}")


# in the cluster


async def clean_up_member(
    member: Client,
    name: str,
    namespace: str,
    *,
    wait: float = WAIT_SECONDS,
    force: bool = False,
    clock: Clock = SYSTEM,
    progress: Progress = quiet,
) -> None:
    """Delete what joining created there.

    With `force` failures are reported and skipped, also if the cluster does not respond.
    """
    try:
        await with_timeout(clock, _delete_member_objects(member, name, namespace, force, progress), wait)
    except (ConnectionFailed, TimeoutError) as error:
        why = str(error) or f"no response within {wait:g}s"
        if not force:
            raise JoinError(f"what joining made in cluster {name} could not be removed: {why}") from error
        progress(f"what joining made in cluster {name} stays there: {why}")
    else:
        progress(f"cluster {name} has nothing of the control plane any more")


async def _delete_member_objects(member: Client, name: str, namespace: str, force: bool, progress: Progress) -> None:
    """Delete what joining made in the member, the rights first."""
    account = well_known.service_account_name(name)
    role = well_known.cluster_role_name(account)
    for kind, found, where in (
        (CLUSTER_ROLE_BINDINGS, role, ""),
        (CLUSTER_ROLES, role, ""),
        (ACCOUNTS, account, namespace),
        (NAMESPACES, namespace, ""),
    ):
        try:
            await delete_if_exists(member, kind, found, where)
        except ApiError as error:
            if not force:
                raise
            progress(f"{kind.resource} {found}: not deleted: {error}")
