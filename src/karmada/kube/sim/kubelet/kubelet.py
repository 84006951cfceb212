"""The kubelets of all simulated nodes: one reconciler that runs pods and reports their status.

A pod's states are computed in podlifecycle; here ConfigMaps and Secrets are looked up, the status is patched if it
differs, events are emitted, and the key is requeued for its next step. A pod in a final or steady state has no timer
and keeps only a `Record`: its share of the node's resources, and the resourceVersion that was last reconciled, so that
the echo of an own write costs one comparison. Pods of a failed node are not reconciled. A `Runtime`, if there is one,
runs containers: it is given those that should run after every step, and reports when one has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NODES, PODS
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.podstate import is_terminal, node_name
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import Handler
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import get_if_exists
from karmada.kube.sim.behaviours import Behaviours, Outcome
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.controllers.podcontrol import BY_NODE, index_by_node, pods_on
from karmada.kube.sim.kubelet import mounts
from karmada.kube.sim.kubelet.container_environment import sub_path_problem
from karmada.kube.sim.kubelet.courses import Courses, Known
from karmada.kube.sim.kubelet.managed import internal_ip, is_managed
from karmada.kube.sim.kubelet.node_context import NodeContext, PodEvent
from karmada.kube.sim.kubelet.nodestate import Addresses, NodeState, is_taken, refusal, requests_of
from karmada.kube.sim.kubelet.podstatus import patch_of, rejection, status_of
from karmada.kube.sim.kubelet.run import NEVER, Run, accept, restore
from karmada.kube.sim.kubelet.runtime import Observed, Runtime
from karmada.kube.sim.scheduler.pods import host_ports

_RESOURCES: dict[mounts.Kind, GVR] = {
    "configmap": GVR("", "v1", "configmaps"),
    "secret": GVR("", "v1", "secrets"),
}
_RECHECK_SECONDS = 120.0
"""A pod that lacks something is reconciled when it appears; the event is repeated after so long."""
_RESIZABLE_SINCE = 33
_LOST = 255
"""The exit code of a container of which nothing is left, as after a reboot of its node."""
_RELEVANT_METADATA = ("deletionTimestamp", "deletionGracePeriodSeconds", "annotations", "labels", "finalizers")
"""Metadata that the states of a pod depend on, besides its spec."""


Lacking: TypeAlias = tuple[mounts.Kind, str, str]
"""Kind, namespace and name of something a pod waits for."""


class Power(Protocol):
    """The nodes that have failed."""

    def failed(self, node_name: str) -> bool: ...

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the name of each node that fails or works again."""


@dataclass(slots=True)
class Record:
    """A pod that its node has admitted."""

    uid: str
    node: str
    requests: dict[str, int]
    ip: str = ""
    addresses: Addresses | None = None
    outcome: Outcome | None = None
    run: Run | None = None
    lacks: set[Lacking] = field(default_factory=set)
    ended: dict[str, int] = field(default_factory=dict)
    """Containers that were ended through their terminal, with the exit code; until the status shows it."""
    courses: Known = field(default_factory=dict)
    rest: int = 0
    """The resourceVersion that was last reconciled."""


class Kubelet(Reconciler):
    name = "kubelet"
    workers = 16

    def __init__(
        self, context: Context, behaviours: Behaviours, power: Power | None = None, runtime: Runtime | None = None
    ) -> None:
        self._context = context
        self._clock = context.clock
        self._behaviours = behaviours
        self._power = power
        self._runtime = runtime
        self._client = context.client(KUBELET)
        self._recorder = context.recorder("kubelet")
        self._courses = Courses(context)
        self._pods = context.informers.of(PODS, indexes={BY_NODE: index_by_node})
        self._nodes = context.informers.of(NODES)
        self._records: dict[Key, Record] = {}
        self._states: dict[str, NodeState] = {}
        self._addresses: dict[str, Addresses] = {}
        self._waiting: dict[Lacking, set[Key]] = {}
        self._followed: set[mounts.Kind] = set()
        self._add: Callable[[Key], None] = lambda _: None
        self.watches = (
            Watch(PODS, when=_on_a_node),
            Watch(NODES, when=_managed_changed, map_to=pods_on(self._pods)),
        )
        behaviours.subscribe(self._rules_changed)
        if power is not None:
            power.on_change(self._power_changed)
        if runtime is not None:
            runtime.connect(self._run_changed, lambda pod, *event: self._emit(pod, [PodEvent(*event)]))

    def attach(self, add: Callable[[Key], None]) -> None:
        self._add = add

    # triggers besides changes of pods

    def _rules_changed(self) -> None:
        for key, record in self._records.items():
            pod = self._pods.get(key)
            if pod is not None and self._behaviours.of(pod) != record.outcome:
                record.rest = 0
                self._add(key)

    def _power_changed(self, name: str) -> None:
        for pod in self._pods.by_index(BY_NODE, name):
            self._add(key_of(pod))

    def _run_changed(self, key: Key) -> None:
        record = self._records.get(key)
        if record is not None:
            record.rest = 0
            self._add(key)

    async def end(self, pod: Obj, container: str, code: int) -> None:
        """End a container whose process was ended through its terminal."""
        key = key_of(pod)
        record = self._records.get(key)
        if record is not None and record.uid == pod["metadata"]["uid"]:
            record.ended[container], record.rest = code, 0
            self._add(key)

    # reconciling

    async def reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key)
        record = self._records.get(key)
        if record is not None and (pod is None or pod["metadata"]["uid"] != record.uid):
            self._drop(key)
        if self._runtime is not None:
            self._runtime.forget(key, pod["metadata"]["uid"] if pod is not None else "")
        if pod is None:
            return Done
        node = self._node(node_name(pod))
        if node is None:
            if self._runtime is not None:
                self._runtime.kill(key)  # a machine that is switched off
            return Done
        state = self._state(node)
        record = self._records.get(key)
        if record is not None:
            pod = _newest(pod, record)
            if record.rest > _version(pod):
                return Done  # an event older than our own write
        try:
            if is_terminal(pod):
                return await self._clear(key, pod)
            if record is None:
                record = await self._take(pod, node, state)
                return Done if record is None else await self._run(key, _newest(pod, record), node, record)
            if record.rest == _version(pod) and (record.run is None or record.run.due > self._clock.monotonic()):
                return self._when_due(record)
            return await self._run(key, pod, node, record)
        except NotFound:
            return Done  # deleted meanwhile; its event follows

    def _node(self, name: str) -> Obj | None:
        """Return a simulated node that has not failed."""
        node = self._nodes.get(Key("", name))
        if node is None:
            self._states.pop(name, None)
            self._context.volumes.forget_node(name)
            return None
        if not is_managed(node) or (self._power is not None and self._power.failed(name)):
            return None
        return node

    def _state(self, node: Obj) -> NodeState:
        """Return the node's allocated resources, counted from its pods on first use."""
        name = node["metadata"]["name"]
        state = self._states.get(name)
        if state is None:
            state = self._states[name] = NodeState()
            for pod in self._pods.by_index(BY_NODE, name):
                if is_taken(pod):
                    self._record(pod, node, state)
        return state

    def _record(self, pod: Obj, node: Obj, state: NodeState) -> Record:
        record = Record(pod["metadata"]["uid"], node["metadata"]["name"], requests_of(pod))
        state.add(record.requests)
        ip = (pod.get("status") or {}).get("podIP")
        if ip and not pod["spec"].get("hostNetwork"):
            record.ip, record.addresses = ip, self._addresses_of(node)
            record.addresses.reserve(ip)
        self._records[key_of(pod)] = record
        return record

    def _addresses_of(self, node: Obj) -> Addresses:
        cidr = (node.get("spec") or {}).get("podCIDR") or ""
        addresses = self._addresses.get(cidr)
        if addresses is None:
            addresses = Addresses(cidr) if cidr else self._common_addresses()
            self._addresses[cidr] = addresses
        return addresses

    def _common_addresses(self) -> Addresses:
        """For nodes without a range of their own; those that have one got it from the lower end."""
        addresses = Addresses(self._context.profile.pod_cidr, upper_half=True)
        for pod in self._pods.list():
            ip = (pod.get("status") or {}).get("podIP")
            if ip and not is_terminal(pod):
                addresses.reserve(ip)
        return addresses

    def _drop(self, key: Key) -> None:
        """Release the pod's resources on its node."""
        record = self._records.pop(key, None)
        if record is None:
            return
        self._context.volumes.forget_pod(record.uid)
        for lacking in record.lacks:
            self._waiting.get(lacking, set()).discard(key)
        state = self._states.get(record.node)
        if state is not None:
            state.subtract(record.requests)
        if record.addresses is not None:
            record.addresses.give_back(record.ip)

    # admission

    async def _take(self, pod: Obj, node: Obj, state: NodeState) -> Record | None:
        """Admit the pod and write its first status; None if it is rejected."""
        if is_taken(pod):
            return self._record(pod, node, state)
        if is_deleting(pod):
            await self._delete(pod)
            return None
        requests = requests_of(pod)
        others = self._pods.by_index(BY_NODE, node["metadata"]["name"]) if host_ports(pod["spec"]) else ()
        refused = refusal(pod, node, requests, state.used, others)
        if refused is not None:
            self._recount(node)
            refused = refusal(pod, node, requests, state.used, others)
        if refused is not None:
            await self._refuse(pod, *refused)
            return None
        record = self._record(pod, node, state)
        record.run = accept(pod, self._clock.now())
        await self._write(record.run, node)
        return record

    def _recount(self, node: Obj) -> None:
        """Release what is gone although its deletion event has not arrived."""
        name = node["metadata"]["name"]
        present = {key_of(pod): pod for pod in self._pods.by_index(BY_NODE, name)}
        for key, record in list(self._records.items()):
            if record.node == name:
                pod = present.get(key)
                if pod is None or pod["metadata"]["uid"] != record.uid or is_terminal(pod):
                    self._drop(key)

    async def _refuse(self, pod: Obj, reason: str, message: str) -> None:
        self._emit(pod, [PodEvent(WARNING, reason, message)])
        minor, now = self._context.profile.minor, self._clock.now()
        status = rejection(pod, reason, f"Pod was rejected: {message}", minor, now)
        await self._patch(pod, status)

    # running

    async def _run(self, key: Key, pod: Obj, node: Obj, record: Record) -> Result:
        run = record.run
        if run is None:
            run = record.run = restore(pod)
        run.pod, record.rest = pod, 0
        while True:
            outcome = record.outcome = self._behaviours.of(run.pod)
            seen = run.pod
            around, lacking = await self._node_context(key, run, node)
            around.observed, record.ended = self._observed(key, run, record.ended), {}
            self._emit(pod, [*lacking, *await self._courses.advance(run, record.courses, outcome, around)])
            if run.sandbox and not run.ip:
                self._give_address(run, node, record)
            if self._runtime is not None:
                self._sync_runtime(self._runtime, run, internal_ip(node))
            if run.stopped or not is_deleting(run.pod):
                await self._write(run, node)
            if run.stopped or (run.final is not None and is_deleting(run.pod)):
                await self._delete(run.pod)
                break
            if run.due > self._clock.monotonic() and not _changed_by_others(seen, run.pod):
                break
        if lacking or around.config_errors:
            return requeue(min(run.due - self._clock.monotonic(), _RECHECK_SECONDS))
        record.rest = _version(run.pod)
        if run.due == NEVER:
            record.run = None
        return self._when_due(record)

    def _when_due(self, record: Record) -> Result:
        return Done if record.run is None else requeue(max(0.0, record.run.due - self._clock.monotonic()))

    def _give_address(self, run: Run, node: Obj, record: Record) -> None:
        if run.pod["spec"].get("hostNetwork"):
            run.ip = internal_ip(node)
        else:
            record.addresses = self._addresses_of(node)
            run.ip = record.ip = record.addresses.take()

    def _observed(self, key: Key, run: Run, ended: dict[str, int]) -> dict[str, Observed]:
        """Containers that were ended through their terminal, and what the runtime has to say about its own."""
        found: dict[str, Observed] = {}
        if self._runtime is None and not ended:
            return found
        for container in run.containers:
            name, attempt = container.name, container.restarts
            if name in ended:
                found[name] = Observed(attempt, ended[name])
            elif self._runtime is not None and container.state == "running" and self._runtime.runs(container.spec):
                seen = self._runtime.observe(key, run.uid, name, attempt)
                found[name] = seen or Observed(attempt, _LOST, "Unknown", "the simulator was restarted")
        return found

    @staticmethod
    def _sync_runtime(runtime: Runtime, run: Run, host_ip: str) -> None:
        """Have exactly those containers run that the pod's status will show as running."""
        pod = run.pod
        stopping = run.stopped or run.stop_due != NEVER
        wanted = {
            container.name: container.restarts
            for container in run.containers
            if container.state == "running" and not stopping and runtime.runs(container.spec)
        }
        grace = pod["metadata"].get("deletionGracePeriodSeconds")
        if grace is None:
            grace = pod["spec"].get("terminationGracePeriodSeconds") or 0
        addresses: Obj = {"podIP": run.ip, "podIPs": [{"ip": run.ip}], "hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
        runtime.sync({**pod, "status": {**(pod.get("status") or {}), **addresses}}, wanted, float(grace))

    async def _write(self, run: Run, node: Obj) -> None:
        wanted = status_of(run, internal_ip(node), self._context.profile.minor, self._clock.now())
        run.pod = await self._patch(run.pod, wanted)

    async def _patch(self, pod: Obj, wanted: Obj) -> Obj:
        patch = patch_of(pod.get("status") or {}, wanted)
        if patch is None:
            return pod
        metadata = pod["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": patch}
        return await self._client.patch(
            PODS, metadata["name"], metadata["namespace"], body, type="strategic", subresource="status"
        )

    def _emit(self, pod: Obj, events: Iterable[PodEvent]) -> None:
        for event in events:
            self._recorder.event(pod, *event, host=node_name(pod))

    # deletion

    async def _clear(self, key: Key, pod: Obj) -> Result:
        """Release the resources of a finished pod; delete it if it is being deleted."""
        self._drop(key)
        await self._delete(pod)
        return Done

    async def _delete(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        if not metadata.get("deletionTimestamp"):
            return
        if metadata.get("finalizers") and metadata.get("deletionGracePeriodSeconds") == 0:
            return  # the finalizer's owner deletes it
        await self._client.delete(PODS, metadata["name"], metadata["namespace"], grace_period=0, uid=metadata["uid"])

    # ConfigMaps and Secrets

    async def _node_context(self, key: Key, run: Run, node: Obj) -> tuple[NodeContext, list[PodEvent]]:
        """Return the pod's environment on its node, and events about missing ConfigMaps and Secrets."""
        profile = self._context.profile
        mount_error = ""
        complaints: list[PodEvent] = []
        config_errors: dict[str, str] = {}
        if not is_deleting(run.pod):
            if not run.mounted:
                for reference in mounts.volume_references(run.pod):
                    wrong = await self._problem(key, reference)
                    if wrong:
                        mount_error = mounts.mount_message(reference, wrong)
                        complaints.append(PodEvent(WARNING, "FailedMount", mount_error))
            idle = [container.spec for container in run.containers if container.state == "waiting"]
            for reference in mounts.environment_references(idle):
                wrong = await self._problem(key, reference)
                if wrong:
                    config_errors.setdefault(reference.where, wrong)
            for container in idle:
                wrong = await sub_path_problem(self._client, run.pod, container)
                if wrong:
                    config_errors.setdefault(container["name"], wrong)
        around = NodeContext(
            now=self._clock.now(),
            tick=self._clock.monotonic(),
            latencies=profile.latencies,
            random=self._context.random,
            images=self._state(node).images,
            mount_error=mount_error,
            config_errors=config_errors,
            resizes=profile.minor >= _RESIZABLE_SINCE,
        )
        if self._runtime is not None:
            around.runs = self._runtime.runs
        return around, complaints

    async def _problem(self, key: Key, reference: mounts.Reference) -> str:
        """Return the error of a reference; if there is one, the pod is requeued when the object changes."""
        wrong = mounts.problem(reference, key.namespace, await self._lookup(key.namespace, reference))
        if wrong:
            lacking = (reference.kind, key.namespace, reference.name)
            self._waiting.setdefault(lacking, set()).add(key)
            self._records[key].lacks.add(lacking)
            self._follow(reference.kind)
        return wrong

    async def _lookup(self, namespace: str, reference: mounts.Reference) -> Obj | None:
        return await get_if_exists(self._client, _RESOURCES[reference.kind], reference.name, namespace)

    def _follow(self, kind: mounts.Kind) -> None:
        """Watch these objects from now on; most clusters never need it."""
        if kind not in self._followed:
            self._followed.add(kind)
            informer = self._context.informers.of(_RESOURCES[kind], shape=METADATA)
            informer.add_handler(self._requeue_waiting(kind))
            informer.start()

    def _requeue_waiting(self, kind: mounts.Kind) -> Handler:
        def handle(_: Obj | None, new: Obj | None) -> None:
            if new is not None:
                namespace, name = key_of(new)
                for key in self._waiting.pop((kind, namespace, name), ()):
                    self._add(key)

        return handle


def _newest(pod: Obj, record: Record) -> Obj:
    """Return our own last write, if it is newer than the informer."""
    if record.run is None:
        return pod
    ours = record.run.pod
    return ours if _version(ours) > _version(pod) else pod


def _version(pod: Obj) -> int:
    return int(pod["metadata"]["resourceVersion"])


def _changed_by_others(seen: Obj, written: Obj) -> bool:
    """Requeue from the response of a status write: its event counts as our own write and is skipped."""
    if written is seen:
        return False
    before, after = seen["metadata"], written["metadata"]
    return seen["spec"] != written["spec"] or any(before.get(name) != after.get(name) for name in _RELEVANT_METADATA)


def _on_a_node(old: Obj | None, new: Obj | None) -> bool:
    pod = new if new is not None else old
    return pod is not None and bool(pod["spec"].get("nodeName"))


def _managed_changed(old: Obj | None, new: Obj | None) -> bool:
    if new is None:
        return old is not None and is_managed(old)
    return is_managed(new) and (old is None or not is_managed(old))
