"""What is collected from one member while it is healthy: version, kinds, and its summary.

The informers of its nodes and pods start with the first healthy probe and are not waited for: until both have synced
there is no summary, and what a Cluster's status said before stays. `on_synced` is called when there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from karmada.api.cluster_bounds import bounded_text
from karmada.controllers.cluster_status.enablements import EnablementReader, Enablements
from karmada.controllers.cluster_status.summary import Summary
from karmada.estimator.kept import slim_node, slim_pod
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.logging import get_logger
from karmada.members.members import Member

NODES, PODS = GVR("", "v1", "nodes"), GVR("", "v1", "pods")
log = get_logger("cluster-status")


class Facts(NamedTuple):
    version: str
    enablements: Enablements


class Collector:
    def __init__(
        self,
        member: Member,
        clock: Clock,
        on_synced: Callable[[], None],
        sync_timeout: float,
        enablements: Sequence[Obj] = (),
    ) -> None:
        """Collect the status; `enablements` are those that the Cluster's status has from before."""
        self.member = member
        self._clock = clock
        self._on_synced = on_synced
        self._sync_timeout = sync_timeout
        self._enablements = EnablementReader(member.transport, clock, member.name, enablements)
        self._summary: Summary | None = None
        self._informers: Sequence[Informer] = ()
        self._unsubscribe: list[Callable[[], None]] = []
        self._started_at = 0.0

    def start(self) -> None:
        """Start the informers of nodes and pods, unless they run."""
        if self._summary is not None:
            return
        summary = self._summary = Summary()
        informers = self.member.informers
        nodes = informers.of(NODES, shape=Shape.summary(slim_node))
        pods = informers.of(PODS, shape=Shape.summary(slim_pod))
        self._informers = (nodes, pods)
        self._unsubscribe = [nodes.add_handler(summary.node_changed), pods.add_handler(summary.pod_changed)]
        self._started_at = self._clock.monotonic()
        if not self._synced:
            for informer in self._informers:
                informer.when_synced(self._one_synced)

    def stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        self._informers, self._summary = (), None

    @property
    def _synced(self) -> bool:
        return bool(self._informers) and all(informer.synced for informer in self._informers)

    def _one_synced(self) -> None:
        if self._synced:
            self._on_synced()

    def summary(self, models: Sequence[Obj]) -> Summary | None:
        """Graded by these models; None until everything was listed."""
        if self._summary is None or not self._synced:
            self._warn_not_synced()
            return None
        self._summary.grade_by(models)
        return self._summary

    def _warn_not_synced(self) -> None:
        if self._summary is None or self._clock.monotonic() - self._started_at < self._sync_timeout:
            return
        for informer in self._informers:
            if not informer.synced:
                reason = str(informer.last_error or "no response yet")
                log.info(
                    "No summary of a cluster yet", cluster=self.member.name, resource=str(informer.gvr), err=reason
                )

    async def facts(self) -> Facts:
        """Return one request after the other: concurrent ones would each need, and keep, a connection."""
        return Facts(await self._version(), await self._enablements.read())

    async def _version(self) -> str:
        """Empty when the member does not report it."""
        try:
            answer = await self.member.client.raw("GET", "/version")
        except (ApiError, ConnectionFailed) as error:
            log.error("The version of a cluster cannot be read", error, cluster=self.member.name)
            return ""
        return bounded_text(str(answer.get("gitVersion") or "")) if isinstance(answer, dict) else ""
