"""A command's way to servers: the control plane, and its members through the control plane's proxy.

A member is reached with the caller's own credentials: only the URL differs. Who may use `clusters/proxy` may look.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from karmada.cli.targeting import connect
from karmada.kube.objects.shapes import METADATA

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.client.config import RestConfig
    from karmada.kube.objects.errors import NotFound
    from karmada.kube.objects.gvk import GVR
    from karmada.kube.objects.types import Obj

T = TypeVar("T")
CONTROL_PLANE = "Karmada"
"""Name of the control plane among the clusters in tables."""
MEMBER_SECONDS = 10.0
"""For how long a member may not answer a request."""


@dataclass(frozen=True, slots=True)
class Session:
    """One server, and the namespace a command works in there."""

    name: str
    config: RestConfig
    client: Client
    namespace: str
    namespace_given: bool = False
    """True if a flag named the namespace, rather than the kubeconfig."""

    async def get(self, gvr: GVR, name: str, namespace: str = "", *, subresource: str = "") -> Obj:
        """Return an object by name; NotFound is that of its namespace, if that does not exist."""
        from karmada.kube.objects.errors import NotFound

        try:
            return await self.client.get(gvr, name, namespace, subresource=subresource)
        except NotFound as error:
            raise await self.what_is_missing(error, namespace) from None

    async def what_is_missing(self, error: NotFound, namespace: str) -> NotFound:
        """Return the NotFound for an object that was requested by name: that of its namespace first, as in kubectl.

        One more request, and only after a failure; `default` always exists.
        """
        from karmada.kube.objects.errors import ApiError, NotFound
        from karmada.kube.objects.gvk import GVR

        if namespace in ("", "default") or not error.details.get("name"):
            return error
        try:
            await self.client.get(GVR("", "v1", "namespaces"), namespace)
        except NotFound as missing:
            return missing
        except ApiError:
            return error
        return error


@asynccontextmanager
async def control_plane(kubeconfig: str = "", context: str = "", namespace: str = "") -> AsyncIterator[Session]:
    connect.check_name(namespace, "namespace")
    config = connect.control_config(kubeconfig, context)
    async with connect.connected(config) as client:
        yield Session(CONTROL_PLANE, config, client, namespace or config.namespace, bool(namespace))


@asynccontextmanager
async def member(control: Session, cluster: str) -> AsyncIterator[Session]:
    """Yield a client of the member behind the control plane's proxy, Ready or not; ApiError when it does not exist."""
    connect.check_name(cluster)
    await control.client.get(clusters_gvr(), cluster)
    async with through_proxy(control, cluster) as session:
        yield session


@asynccontextmanager
async def one_server(
    kubeconfig: str = "", context: str = "", cluster: str = "", namespace: str = ""
) -> AsyncIterator[Session]:
    """Yield a client of the member, or with "" of the control plane."""
    async with control_plane(kubeconfig, context, namespace) as control:
        if not cluster:
            yield control
            return
        async with member(control, cluster) as session:
            yield session


def clusters_gvr() -> GVR:
    """Named here, because the typed kinds take long to import."""
    from karmada.kube.objects.gvk import GVR

    return GVR("cluster.karmada.io", "v1alpha1", "clusters")


@asynccontextmanager
async def through_proxy(control: Session, cluster: str, *, warnings: bool = True) -> AsyncIterator[Session]:
    """Yield a client of a member, of which the caller knows already that it exists."""
    url = f"{control.config.server.rstrip('/')}/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}/proxy"
    config = replace(control.config, server=url, timeout=MEMBER_SECONDS)
    async with connect.connected(config, warnings=warnings) as client:
        yield replace(control, name=cluster, config=config, client=client)


async def chosen_members(control: Session, names: Sequence[str] = ()) -> list[str]:
    """Return the named clusters, or all; Failure names those that do not exist."""
    listed = await control.client.list_all(clusters_gvr(), shape=METADATA)
    existing = [cluster["metadata"]["name"] for cluster in listed.items]
    wanted = connect.commas(names)
    missing = [name for name in wanted if name not in existing]
    if missing:
        raise connect.failure(f"clusters don't exist: {','.join(missing)}")
    return list(dict.fromkeys(wanted)) or existing


async def from_each(
    control: Session,
    clusters: Sequence[str],
    work: Callable[[Session], Awaitable[T]],
    *,
    named: Collection[str],
    warnings: bool = True,
) -> tuple[dict[str, T], dict[str, str]]:
    """Do the same work in several members at once; return results, and errors by cluster, in their order.

    A failing member does not affect the others; one that cannot be reached matters only if it is `named`.
    """
    from karmada.cli.targeting import unreachable

    async def one(cluster: str) -> T:
        async with through_proxy(control, cluster, warnings=warnings) as session:
            return await work(session)

    answers: list[Any] = await asyncio.gather(*(one(cluster) for cluster in clusters), return_exceptions=True)
    results: dict[str, T] = {}
    failures: dict[str, str] = {}
    silent: dict[str, str] = {}
    for cluster, answer in zip(clusters, answers, strict=True):
        if isinstance(answer, BaseException):
            (silent if unreachable.is_unreachable(answer) else failures)[cluster] = connect.reason(answer)
        else:
            results[cluster] = answer
    failures |= await unreachable.settle(control, silent, named)
    return results, {cluster: failures[cluster] for cluster in clusters if cluster in failures}
