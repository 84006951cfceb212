"""Cluster status controller: probes every member periodically and reports its status in the Cluster.

One pass: probe the health, apply the thresholds, and, if the cluster counts as ready, collect its version, kinds and
summary; then write the status if it changed. The first pass runs as soon as the Cluster exists, the next ones at the
update frequency, measured from start to start; when in that period a cluster is probed follows from its name, so that
not all are probed at once. A member that does not respond keeps one worker busy until its probe times out; there are
enough workers for the others.

The control plane does this for clusters in mode Push, an agent for its own in mode Pull: `handles` selects them. An
agent has a `heartbeat` besides, which begins when its cluster is ready for the first time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from karmada.api.cluster import Cluster
from karmada.api.cluster_bounds import bounded_status
from karmada.api.well_known import CLUSTER_FINALIZER
from karmada.controllers.cluster_state import is_push
from karmada.controllers.cluster_status.collector import Collector, Facts
from karmada.controllers.cluster_status.enablements import condition
from karmada.controllers.cluster_status.heartbeat import Heartbeat
from karmada.controllers.cluster_status.metrics import ClusterMetrics
from karmada.controllers.cluster_status.probe import CONDITIONS, READY, Health, no_access, probe, timeout_for
from karmada.controllers.cluster_status.summary import Summary
from karmada.controllers.cluster_status.thresholds import Memory, Thresholds
from karmada.controllers.context import Context
from karmada.controllers.shards import by_cluster
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.meta import finalizers, get_condition, set_condition, uid
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Reconciler, Result, Retry, Watch, requeue
from karmada.kube.runtime.event_filter import matching
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import with_timeout
from karmada.kube.runtime.writes import retry_on_conflict, set_status
from karmada.members.access import BY_SECRET, TIMEOUT, NoAccess, secret_index, secret_key
from karmada.members.members import Member

_FIRST_PAUSE = 0.1
log = get_logger("cluster-status")


def is_pushed(cluster: Obj) -> bool:
    return is_push(cluster) and bool(cluster["spec"].get("secretRef"))


class _Known:
    """The state of one cluster that is remembered between its passes."""

    __slots__ = ("collector", "failures", "health", "memory", "scheduled", "uid")

    def __init__(self, cluster_uid: str) -> None:
        self.uid = cluster_uid
        self.memory: Memory | None = None
        self.collector: Collector | None = None
        self.failures = 0
        self.health = Health.HEALTHY
        """As last observed, whatever the thresholds made of it."""
        self.scheduled = False


class ClusterStatus(Reconciler):
    name = "cluster-status-controller"
    options = ControllerOptions(shard_of=by_cluster)
    workers = 512
    """An idle one costs two kilobytes; a busy one is mostly waiting for a member."""

    def __init__(
        self, context: Context, *, handles: Callable[[Obj], bool] = is_pushed, heartbeat: Heartbeat | None = None
    ) -> None:
        settings = context.settings
        self._client = context.client
        self._clock = context.clock
        self._members = context.members
        self._gates = context.gates
        self._clusters = context.informers.of(Cluster.gvr, indexes={BY_SECRET: secret_index})
        self._secrets = context.members.secrets
        self._handles = handles
        self._heartbeat = heartbeat
        self._frequency = settings.cluster_status_update_frequency
        self._timeout = timeout_for(self._frequency)
        self._thresholds = Thresholds(settings.cluster_success_threshold, settings.cluster_failure_threshold)
        self._summarise = settings.enable_cluster_resource_modeling
        self._sync_timeout = settings.cluster_cache_sync_timeout
        self._known: dict[str, _Known] = {}
        self._add: Callable[[Key], None] = lambda _key: None
        self.metrics: ClusterMetrics = ClusterMetrics()
        fields = ("metadata.generation", "metadata.finalizers", "metadata.uid")
        self.watches: Sequence[Watch] = [Watch(Cluster.gvr, changed=fields, when=matching(handles))]
        if self._secrets is not None:
            self.watches = [*self.watches, Watch(SECRETS, changed=("data",), map_to=self._clusters_with)]

    def _clusters_with(self, secret: Obj) -> Iterable[Key]:
        """Clusters whose credentials are in it: they are probed as soon as these change."""
        users = self._clusters.by_index(BY_SECRET, str(key_of(secret)))
        return [key_of(cluster) for cluster in users if self._handles(cluster)]

    def attach(self, add: Callable[[Key], None]) -> None:
        self._add = add

    def disown(self, owns: Callable[[Key], bool]) -> None:
        for name in [name for name in self._known if not owns(Key("", name))]:
            self._forget(name)

    async def stop(self) -> None:
        if self._heartbeat is not None:
            await self._heartbeat.stop()

    async def reconcile(self, key: Key) -> Result:
        cluster = self._clusters.get(key)
        if cluster is None or not self._handles(cluster):
            self._forget(key.name)
            return Done
        if CLUSTER_FINALIZER not in finalizers(cluster):
            return Done  # its creation triggers this controller
        if await self._secret_not_cached(cluster):
            return Retry
        known = self._of(cluster)
        started = self._clock.monotonic()
        try:
            await self._run_pass(cluster, known)
        except Conflict:
            raise
        except NotFound:
            return Done
        except (ApiError, ConnectionFailed) as error:
            return self._later(cluster, known, error)
        spent = self._clock.monotonic() - started
        self.metrics.observe_pass(key.name, spent)
        return self._next(key.name, known, spent)

    def _of(self, cluster: Obj) -> _Known:
        name = cluster["metadata"]["name"]
        known = self._known.get(name)
        if known is not None and known.uid != uid(cluster):
            self._forget(name)
            known = None
        if known is None:
            known = self._known[name] = _Known(uid(cluster))
        return known

    def _forget(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is not None and known.collector is not None:
            known.collector.stop()
        if self._heartbeat is not None:
            self._heartbeat.end(name)
        self.metrics.forget(name)

    async def _secret_not_cached(self, cluster: Obj) -> bool:
        """Return whether the cache lacks a Secret that exists: no reason to mark a new cluster not ready."""
        ref = secret_key(cluster)
        if ref is None or get_condition((cluster.get("status") or {}).get("conditions"), READY) is not None:
            return False
        namespace, name = ref
        if self._secrets is None or self._secrets.get(Key(namespace, name)) is not None:
            return False
        try:
            await self._client.get(SECRETS, name, namespace, shape=METADATA)
        except NotFound:
            return False
        return True

    # the next pass

    def _next(self, name: str, known: _Known, spent: float) -> Result:
        known.failures = 0
        pause = self._frequency - spent
        if not known.scheduled:
            known.scheduled = True
            pause = self._frequency * (zlib.crc32(name.encode()) % 1000) / 1000
        return requeue(max(self._frequency / 10, pause))

    def _later(self, cluster: Obj, known: _Known, error: Exception) -> Result:
        """When the status cannot be written, the cluster is still probed, at most at the usual frequency."""
        log.error("The status of a cluster cannot be written", error, cluster=cluster["metadata"]["name"])
        pause = min(self._frequency, _FIRST_PAUSE * 2 ** min(known.failures, 10))
        known.failures += 1
        return requeue(pause)

    # one pass

    async def _run_pass(self, cluster: Obj, known: _Known) -> None:
        try:
            member = self._members.get(cluster["metadata"]["name"])
            if member.trouble is not None:
                raise member.trouble
        except NoAccess as error:
            await self._write(cluster, partial(self._with_ready, self._settled(cluster, known, no_access(error))))
            return
        health, why = await probe(member.transport, self._clock, self._timeout)
        self._emit(member.name, known, health, why)
        ready = self._settled(cluster, known, CONDITIONS[health])
        if health is not Health.HEALTHY or ready["status"] != "True":
            await self._write(cluster, partial(self._with_ready, ready))
            return
        if self._heartbeat is not None:
            self._heartbeat.begin(member.name)
        collector = self._collector(known, member, cluster)
        try:
            facts = await with_timeout(self._clock, collector.facts(), TIMEOUT)
        except TimeoutError as error:
            log.error("The status of a healthy cluster could not be collected", error, cluster=member.name)
            await self._write(cluster, partial(self._with_ready, ready))
            return
        summary = collector.summary(self._models(cluster))
        await self._write(cluster, partial(self._with_everything, ready, facts, summary))

    def _emit(self, name: str, known: _Known, health: Health, why: str) -> None:
        before, known.health = known.health, health
        if before is health:
            return
        if health is Health.HEALTHY:
            log.info("A cluster is healthy again", cluster=name)
        else:
            log.info("A cluster does not respond as it should", cluster=name, health=health.value, err=why)

    def _settled(self, cluster: Obj, known: _Known, observed: Obj) -> Obj:
        stored = get_condition((cluster.get("status") or {}).get("conditions"), READY)
        known.memory, counts = self._thresholds.settle(known.memory, stored, observed, self._clock.monotonic())
        return counts

    def _collector(self, known: _Known, member: Member, cluster: Obj) -> Collector:
        collector = known.collector
        if collector is None or collector.member is not member:
            if collector is not None:
                collector.stop()
            wake = partial(self._add, Key("", member.name))
            enablements = (cluster.get("status") or {}).get("apiEnablements") or ()
            collector = known.collector = Collector(member, self._clock, wake, self._sync_timeout, enablements)
        if self._summarise:
            collector.start()
        return collector

    def _models(self, cluster: Obj) -> Sequence[Obj]:
        if not self._gates.enabled("CustomizedClusterResourceModeling"):
            return ()
        return (cluster.get("spec") or {}).get("resourceModels") or ()

    # what is written

    def _with_ready(self, ready: Obj, status: Obj) -> Obj:
        return {**status, "conditions": set_condition(status.get("conditions"), ready, self._clock.now())}

    def _with_everything(self, ready: Obj, facts: Facts, summary: Summary | None, status: Obj) -> Obj:
        collected: Obj = {"kubernetesVersion": facts.version, "apiEnablements": facts.enablements.entries}
        if summary is not None:
            collected |= bounded_status({"nodeSummary": summary.nodes(), "resourceSummary": summary.resources()})
        conditions = set_condition(status.get("conditions"), condition(facts.enablements), self._clock.now())
        return self._with_ready(ready, {**status, **collected, "conditions": conditions})

    async def _write(self, cluster: Obj, change: Callable[[Obj], Obj]) -> None:
        """`change` makes the new status from the old one; after a conflict, from the one that was written meanwhile."""
        name, current = cluster["metadata"]["name"], cluster

        async def attempt() -> None:
            nonlocal current
            try:
                current = (
                    await set_status(self._client, Cluster.gvr, current, change(current.get("status") or {}))
                ).object
            except Conflict:
                current = await self._client.get(Cluster.gvr, name)
                if uid(current) != uid(cluster):
                    raise NotFound.of(Cluster.gvr.group_resource, name) from None
                raise

        await retry_on_conflict(attempt, clock=self._clock)
        self.metrics.record(name, current.get("status") or {})
