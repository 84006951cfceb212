"""The usage of pods and nodes of members, read concurrently.

Each member's metrics.k8s.io is read through the control plane's proxy. A name that only some members have is not an
error of the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj

T = TypeVar("T")
_SOON = 120.0
"""Younger pods have not been measured yet, and that is nothing to complain about."""
_MILLI = 10**6
_MEBI = 1024 * 1024 * 10**9


class Amount(NamedTuple):
    """In billionths of a core and of a byte, as exact as the API: sums are rounded once."""

    cpu: int = 0
    memory: int = 0

    def plus(self, other: Amount) -> Amount:
        return Amount(self.cpu + other.cpu, self.memory + other.memory)

    def cells(self) -> list[str]:
        return [f"{-(-self.cpu // _MILLI)}m", f"{self.memory // _MEBI}Mi"]


class PodUse(NamedTuple):
    cluster: str
    namespace: str
    name: str
    containers: list[tuple[str, Amount]]

    @property
    def total(self) -> Amount:
        return summed(amount for _, amount in self.containers)


class NodeUse(NamedTuple):
    """`used` is None when nobody measured it."""

    cluster: str
    name: str
    used: Amount | None
    has: Amount


def summed(amounts: Iterable[Amount]) -> Amount:
    total = Amount()
    for amount in amounts:
        total = total.plus(amount)
    return total


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """The request for every member. `namespace` is empty for all namespaces, and for nodes."""

    name: str = ""
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    capacity: bool = False


@dataclass(slots=True)
class Answers:
    """The metrics of the members; errors are in `failures`."""

    pods: list[PodUse] = field(default_factory=list)
    nodes: list[NodeUse] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


# requests


async def usage_of_pods(
    request: MetricsRequest, clusters: Sequence[str], everywhere: bool, way: connect.Way, namespace: str
) -> tuple[Answers, str]:
    """Return the metrics, and the namespace that was read."""
    from dataclasses import replace

    async with way.open(namespace) as control:
        if not everywhere:
            request = replace(request, namespace=control.namespace)
        found = await _from_each(control, clusters, request, lambda member: _pods_of(member, request))
    pods = [use for uses in found[0].values() for use in uses]
    return Answers(pods=pods, failures=found[1]), request.namespace


async def usage_of_nodes(request: MetricsRequest, clusters: Sequence[str], way: connect.Way) -> Answers:
    async with way.open() as control:
        found = await _from_each(control, clusters, request, lambda member: _nodes_of(member, request))
    return Answers(nodes=[use for uses in found[0].values() for use in uses], failures=found[1])


async def _from_each(
    control: Session, clusters: Sequence[str], request: MetricsRequest, work: Callable[[Session], Awaitable[list[T]]]
) -> tuple[dict[str, list[T]], dict[str, str]]:
    """Return the usage of each member; one without the requested name is skipped, as long as another one has it."""
    from karmada.cli.targeting import session
    from karmada.kube.objects.errors import NotFound

    missing: dict[str, str] = {}

    async def one(member: Session) -> list[T]:
        try:
            return await work(member)
        except NotFound as error:
            if not request.name:
                raise
            missing[member.name] = error.message
            return []

    chosen = await session.chosen_members(control, clusters)
    named = {name for word in clusters for name in word.split(",")}
    results, failures = await session.from_each(control, chosen, one, named=named)
    if not any(results.values()):
        failures = {cluster: (failures | missing)[cluster] for cluster in chosen if cluster in failures | missing}
    return results, failures


async def _metrics(member: Session, resource: str, request: MetricsRequest) -> list[Obj]:
    from karmada.kube.objects.errors import ApiError
    from karmada.kube.objects.gvk import GVR, GroupVersion

    version = GroupVersion("metrics.k8s.io", "v1beta1")
    gvr = GVR(*version, resource)
    try:
        if request.name:
            return [await member.client.get(gvr, request.name, request.namespace)]
        listed = await member.client.list_all(
            gvr, request.namespace, label_selector=request.labels, field_selector=request.fields
        )
        return listed.items
    except ApiError as error:
        if error.http_code not in (404, 503):
            raise
        catalog = await member.client.mapper.catalog()
        if version not in catalog.group_versions:
            raise connect.failure("metrics API not available") from error
        raise


async def _pods_of(member: Session, request: MetricsRequest) -> list[PodUse]:
    from karmada.kube.objects.errors import NotFound

    try:
        measured = await _metrics(member, "pods", request)
    except NotFound:
        measured = []
    if not measured:
        await _explain(member, request)
    return [_pod_use(member.name, metrics) for metrics in measured]


async def _explain(member: Session, request: MetricsRequest) -> None:
    """Why there are no measurements; nothing is wrong when there are no pods."""
    import time

    from karmada.kube.objects.gvk import GVR
    from karmada.kube.objects.times import format_duration, parse_time

    gvr = GVR("", "v1", "pods")
    if request.name:
        pods = [await member.client.get(gvr, request.name, request.namespace)]
    else:
        listed = await member.client.list_all(
            gvr, request.namespace, label_selector=request.labels, field_selector=request.fields
        )
        pods = listed.items
    for found in pods:
        metadata = found["metadata"]
        age = time.time() - parse_time(metadata["creationTimestamp"])
        if age > _SOON:
            place = f"{metadata['namespace']}/{metadata['name']}"
            raise connect.failure(f"Metrics not available for pod {place}, age: {format_duration(int(age))}")
    if pods:
        raise connect.failure("metrics not available yet")


def _pod_use(cluster: str, metrics: Obj) -> PodUse:
    metadata = metrics["metadata"]
    containers = [(one["name"], _amount(one.get("usage"))) for one in metrics.get("containers") or ()]
    return PodUse(cluster, metadata.get("namespace", ""), metadata["name"], sorted(containers))


def _amount(resources: Obj | None) -> Amount:
    from karmada.kube.objects.quantity import Quantity

    found = resources or {}
    return Amount(*(Quantity.parse(found.get(name) or "0").nano for name in ("cpu", "memory")))


async def _nodes_of(member: Session, request: MetricsRequest) -> list[NodeUse]:
    import asyncio

    from karmada.kube.objects.errors import NotFound
    from karmada.kube.objects.gvk import GVR

    async def nodes() -> list[Obj]:
        gvr = GVR("", "v1", "nodes")
        if request.name:
            return [await member.client.get(gvr, request.name)]
        return (await member.client.list_all(gvr, label_selector=request.labels)).items

    async def measured() -> list[Obj]:
        try:
            return await _metrics(member, "nodes", request)
        except NotFound:
            return []

    there, metrics = await asyncio.gather(nodes(), measured())
    used = {one["metadata"]["name"]: _amount(one.get("usage")) for one in metrics}
    has = "capacity" if request.capacity else "allocatable"
    return [
        NodeUse(
            member.name,
            one["metadata"]["name"],
            used.get(one["metadata"]["name"]),
            _amount((one.get("status") or {}).get(has)),
        )
        for one in there
    ]
