"""The scheduler: chooses a node for every pod, one decision at a time, and binds the pods.

Informers keep the state and the queue up to date. The loop takes the most important pod, decides without waiting for
anything, and counts the pod as placed from that moment on; requests (bindings, conditions, deletions) are sent by the
outbox while the next pods are decided. A pod is in one place only: in the queue, in hand, or on a node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NAMESPACES, NODES, PODS
from karmada.kube.objects.meta import is_deleting, labels
from karmada.kube.objects.podstate import is_terminal, node_name
from karmada.kube.objects.selectors import Labels
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.sim.context import SCHEDULER, Context
from karmada.kube.sim.scheduler import messages, preemption
from karmada.kube.sim.scheduler.algorithm import Algorithm, Choice, Diagnosis
from karmada.kube.sim.scheduler.binding import Binder
from karmada.kube.sim.scheduler.outbox import Outbox
from karmada.kube.sim.scheduler.pods import Interned, PodInfo, is_gated, is_ours
from karmada.kube.sim.scheduler.queue import SchedulingQueue
from karmada.kube.sim.scheduler.reporting import ERROR, GATED, Reporter
from karmada.kube.sim.scheduler.state import ClusterState
from karmada.kube.sim.scheduler.timers import Timers
from karmada.kube.sim.scheduler.volumes import Volumes

_DECISIONS_AT_ONCE = 32
_BUDGETS_V1_SINCE = 21

_POD_CAME = (messages.AFFINITY, messages.SPREAD)
_POD_LEFT = (
    messages.FIT, messages.PORTS, messages.ANTI_AFFINITY, messages.SPREAD, messages.ONE_POD_VOLUMES,
)  # fmt: skip
_BEYOND_ONE_NODE = frozenset((
    messages.AFFINITY, messages.ANTI_AFFINITY, messages.SPREAD, messages.ONE_POD_VOLUMES, messages.VOLUMES,
))  # fmt: skip
"""Filters that depend on more than one node, so that a change on one may help on another."""
_NODE_CHANGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("metadata", "labels", (
        messages.NODE_AFFINITY, messages.AFFINITY, messages.ANTI_AFFINITY, messages.SPREAD, messages.VOLUMES,
    )),
    ("spec", "taints", (messages.TAINTS, messages.SPREAD)),
    ("spec", "unschedulable", (messages.UNSCHEDULABLE,)),
    ("status", "allocatable", (messages.FIT,)),
)  # fmt: skip
_NODE_CAME = (
    messages.NO_NODES, messages.FIT, messages.PORTS, messages.TAINTS, messages.UNSCHEDULABLE, messages.NODE_AFFINITY,
    messages.AFFINITY, messages.ANTI_AFFINITY, messages.SPREAD, messages.VOLUMES,
)  # fmt: skip

log = get_logger("scheduler")


class Scheduler:
    """A component: runs from `start` to `stop`, and may be started again."""

    name = "scheduler"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client(SCHEDULER)
        self._pods = context.informers.of(PODS)
        self._nodes = context.informers.of(NODES)
        self._namespaces = context.informers.of(NAMESPACES)
        self._texts = messages.Texts(context.profile.minor)
        self._timers = Timers(context.clock, "scheduler timer")
        self._outbox = Outbox(self._timers)
        self._queue = SchedulingQueue(context.clock, self._timers)
        self._reporter = Reporter(context)
        self._order = count()
        self._interned = Interned()
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self._reset()

    def _reset(self) -> None:
        self.state = ClusterState(self._namespace_labels)
        self._volumes = Volumes(self._context, self._client, self._texts, self.state)
        self._algorithm = Algorithm(self.state, self._volumes, self._texts, self._context.random)
        self._binder = Binder(
            self._context, self._volumes, self._reporter, self._outbox, self._timers, self._binding_undone
        )
        self._placed: dict[Key, PodInfo] = {}

    def _namespace_labels(self, name: str) -> Labels:
        namespace = self._namespaces.get(Key("", name))
        return labels(namespace) if namespace is not None else {}

    # life cycle

    async def start(self) -> None:
        if self._task is not None:
            return
        self._outbox.open()
        sources = (
            (self._namespaces, self._on_namespace),
            (self._nodes, self._on_node),
            (self._volumes.classes, self._on_volume),
            (self._volumes.volumes, self._on_volume),
            (self._volumes.claims, self._on_claim),
            (self._pods, self._on_pod),
        )
        for informer, handler in sources:
            informer.start()
            await informer.wait_synced()
            self._unsubscribe.append(informer.add_handler(handler))
        self._task = asyncio.create_task(self._run(), name="scheduler")

    async def stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        task, self._task = self._task, None
        if task is not None:
            await cancel_and_wait(task)
        await self._outbox.close()
        await self._timers.stop()
        self._queue.clear()
        self._binder.clear()
        self._reset()

    @property
    def idle(self) -> bool:
        """Return whether there is nothing to decide and nothing under way; pods may still wait for a node."""
        return self._queue.idle and self._outbox.idle

    async def _run(self) -> None:
        while True:
            await self._queue.until_ready()
            for _ in range(_DECISIONS_AT_ONCE):
                info = self._queue.pop()
                if info is None:
                    break
                try:
                    self._schedule(info)
                except Exception as error:
                    log.exception("Scheduling a pod failed", error, pod=str(info.key))
                    self._queue.again(info)
            await asyncio.sleep(0)

    # decisions

    def _schedule(self, info: PodInfo) -> None:
        outcome = self._algorithm.decide(info)
        if isinstance(outcome, Choice):
            self._assume(info, outcome)
        elif self._may_preempt(info, outcome):
            self._outbox.send(partial(self._guarded, info, self._preempt))
        else:
            message = self._explained(info, outcome)
            self._outbox.send(partial(self._guarded, info, partial(self._refuse, outcome.plugins, message)))

    def _assume(self, info: PodInfo, choice: Choice) -> None:
        info.node = choice.node.name
        self.state.assign(info)
        self._release(info)
        self._placed[info.key] = info
        self._queue.done(info)
        delay = self._context.draw(self._context.profile.latencies.schedule)
        self._binder.bind(info, info.node, choice.volumes, delay)
        self._queue.changed(_POD_CAME)

    def _binding_undone(self, info: PodInfo, why: str) -> None:
        """Take a decision back. If the pod is still there and free, it is tried again after a pause."""
        if self._placed.get(info.key) is info:
            del self._placed[info.key]
            self._removed(info)
        info.node = ""
        self._outbox.send(partial(self._try_again, info, why))

    async def _try_again(self, info: PodInfo, why: str) -> None:
        """First the failures, then the queue, so that a failure cannot overwrite a later binding."""
        if why and self._is_free(info):
            try:
                await self._reporter.failed(info, why, reason=ERROR)
            except (ApiError, ConnectionFailed) as error:
                log.error("A pod's status could not be written", error, pod=str(info.key))
        if self._is_free(info) and self._queue.get(info.key) is None:
            info.attempts += 1
            info.failed_at = self._context.clock.monotonic()
            self._queue.add(info)

    def _is_free(self, info: PodInfo) -> bool:
        pod = self._pods.get(info.key)
        if pod is None or pod["metadata"]["uid"] != info.uid:
            return False
        return not node_name(pod) and not is_deleting(pod) and not is_terminal(pod)

    async def _guarded(self, info: PodInfo, work: Callable[[PodInfo], Awaitable[None]]) -> None:
        """Send requests for a pod in hand: when they fail, the pod is tried again."""
        try:
            await work(info)
        except (ApiError, ConnectionFailed) as error:
            log.error("A pod's status could not be written", error, pod=str(info.key))
            self._queue.again(info)
        except Exception:
            self._queue.again(info)
            raise

    async def _refuse(self, plugins: frozenset[str], message: str, info: PodInfo) -> None:
        if self._queue.get(info.key) is not None:
            await self._reporter.failed(info, message)
        self._queue.failed(info, plugins)

    def _explained(self, info: PodInfo, diagnosis: Diagnosis) -> str:
        """Why there is no node, and why preemption does not help."""
        if not diagnosis.total:
            return diagnosis.message
        if not info.needs.preempts:
            return messages.with_preemption(diagnosis.message, messages.NEVER_PREEMPTS)
        hopeful = sum(nodes for refusal, nodes in diagnosis.refused.items() if not refusal.final)
        refused = {messages.NO_VICTIMS: hopeful} if hopeful else {}
        return messages.with_preemption(diagnosis.message, preemption.without_victims(diagnosis.total, refused))

    # preemption

    def _may_preempt(self, info: PodInfo, diagnosis: Diagnosis) -> bool:
        needs = info.needs
        return needs.preempts and diagnosis.hopeful and self.state.has_lower_priority(needs.priority)

    def _victims_ending(self, info: PodInfo) -> bool:
        node = self.state.nodes.get(info.nominated) if info.nominated else None
        pods = node.pods.values() if node is not None else ()
        return any(pod.deleting and pod.needs.priority < info.needs.priority for pod in pods)

    async def _preempt(self, info: PodInfo) -> None:
        budgets = await self._budgets()
        if self._queue.get(info.key) is not info:
            self._queue.failed(info, frozenset())
            return
        outcome = self._algorithm.decide(info)
        if isinstance(outcome, Choice):
            self._assume(info, outcome)
            return
        if self._victims_ending(info):
            message = messages.with_preemption(outcome.message, messages.VICTIMS_ENDING)
            await self._refuse(outcome.plugins, message, info)
            return
        victims, why = preemption.best(
            self.state, self._algorithm.refuses, info, self._algorithm.hopeful_nodes(info), budgets
        )
        self.state.release(info)
        message = outcome.message
        if victims is None:
            message = messages.with_preemption(message, why)
        else:
            await self._make_room(info, victims)
        await self._refuse(outcome.plugins, message, info)

    async def _make_room(self, info: PodInfo, victims: preemption.Victims) -> None:
        node = victims.node
        lesser = [p for p in (node.nominated or {}).values() if p.needs.priority < info.needs.priority]
        self.state.nominate(info, node.name)
        for other in lesser:
            self.state.release(other)
            await self._reporter.forget_nomination(other)
        for victim in victims.pods:
            await self._reporter.preempt(victim, info)

    async def _budgets(self) -> list[preemption.Budget]:
        version = "v1" if self._context.profile.minor >= _BUDGETS_V1_SINCE else "v1beta1"
        try:
            listed = await self._client.list_all(GVR("policy", version, "poddisruptionbudgets"), resource_version="0")
        except NotFound:
            return []  # a cluster that does not serve them has none
        return preemption.budgets_from(listed.items)

    # pod events

    def _on_pod(self, old: Obj | None, new: Obj | None) -> None:
        if new is None:
            if old is not None:
                self._gone(old)
        elif is_terminal(new):
            self._gone(new)
        elif node_name(new):
            self._on_node_now(old, new)
        elif is_ours(new):
            self._pending(old, new)

    def _info(self, pod: Obj) -> PodInfo:
        return PodInfo(pod, self._interned.of(pod["spec"]), next(self._order))

    def _gone(self, pod: Obj) -> None:
        key, uid = key_of(pod), pod["metadata"]["uid"]
        queued = self._queue.remove(key)
        if queued is not None:
            self._release(queued)
        info = self._placed.get(key)
        if info is not None and info.uid == uid:
            del self._placed[key]
            self._binder.seen(key)
            self._removed(info)

    def _removed(self, info: PodInfo) -> None:
        """Requeue pods that may fit after a pod left its node, and those whose affinity or spreading it affected."""
        node = self.state.unassign(info)
        self._queue.changed(_POD_LEFT, self._helped_on(node.name))

    def _helped_on(self, name: str) -> Callable[[PodInfo], bool]:
        """Return which waiting pods the room on this node may help."""
        refused_by = self._refused_on(name)
        return lambda info: bool(info.plugins & _BEYOND_ONE_NODE) or refused_by(info) is None

    def _refused_on(self, name: str) -> Callable[[PodInfo], str | None]:
        """Return the filter by which a node refuses a pod; computed once for all pods with the same needs."""
        node = self.state.nodes.get(name)
        known: dict[object, str | None] = {}

        def refused_by(info: PodInfo) -> str | None:
            if node is None:
                return messages.NODE_AFFINITY
            if info.needs not in known or info.nominated:
                refusal = self._algorithm.refuses_alone(info, node)
                known[info.needs] = refusal.plugin if refusal is not None else None
            return known[info.needs]

        return refused_by

    def _release(self, info: PodInfo) -> None:
        """Keep no room for it any more: others may have it."""
        if info.nominated:
            name = info.nominated
            self.state.release(info)
            self._queue.changed((messages.FIT,), self._helped_on(name))

    def _on_node_now(self, old: Obj | None, new: Obj) -> None:
        key = key_of(new)
        known = self._placed.get(key)
        self._binder.seen(key)
        queued = self._queue.remove(key)
        if queued is not None:
            self._release(queued)
        if known is not None and known.uid == new["metadata"]["uid"] and _same_place(known, old, new):
            return
        info = self._info(new)
        if known is not None:
            self._removed(known)
        self.state.assign(info)
        self._placed[key] = info
        self._queue.changed(_POD_CAME)

    def _pending(self, old: Obj | None, new: Obj) -> None:
        key = key_of(new)
        if key in self._binder:
            return  # decided already; the binding fails if that was wrong
        known = self._queue.get(key)
        if is_deleting(new) or is_gated(new):
            self._queue.remove(key)
            if known is not None:
                self._release(known)
            if not is_deleting(new):
                self._hold(new)
            return
        if known is not None and old is not None and _same_wishes(old, new):
            return
        info = self._info(new)
        if known is not None:
            self.state.release(known)
        self._queue.add(info)
        if info.nominated:
            self.state.nominate(info, info.nominated)

    def _hold(self, pod: Obj) -> None:
        info = self._info(pod)
        if (info.condition or {}).get("reason") != GATED:
            self._outbox.send(partial(self._reporter.gated, info))

    # other events

    def _on_node(self, old: Obj | None, new: Obj | None) -> None:
        if new is None:
            if old is not None:
                self.state.remove_node(old["metadata"]["name"])
                self._queue.changed((messages.SPREAD,))
            return
        plugins = _NODE_CAME if old is None else _changed_filters(old, new)
        if plugins:
            self.state.set_node(new)
            refused_by = self._refused_on(new["metadata"]["name"])
            beyond = _BEYOND_ONE_NODE.intersection(plugins)
            self._queue.reconsider(plugins, lambda info: None if info.plugins & beyond else refused_by(info))

    def _on_claim(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        self._binder.claim_changed(key)
        if new is not None:
            self._queue.changed(
                (messages.VOLUMES,),
                lambda info: info.key.namespace == key.namespace and any(c.name == key.name for c in info.claims),
            )

    def _on_volume(self, old: Obj | None, new: Obj | None) -> None:  # noqa: ARG002 - the shape of a handler
        """Reconsider pods after a change of a volume or a class of volumes."""
        if new is not None:
            self._queue.changed((messages.VOLUMES,))

    def _on_namespace(self, old: Obj | None, new: Obj | None) -> None:
        if old is None or new is None or labels(old) != labels(new):
            self.state.namespaces_changed()
            self._queue.changed((messages.AFFINITY, messages.ANTI_AFFINITY))


def _same_place(known: PodInfo, old: Obj | None, new: Obj) -> bool:
    """Return whether nothing that is counted about a pod on a node has changed."""
    if known.node != node_name(new) or known.labels != labels(new) or known.deleting != is_deleting(new):
        return False
    return old is None or not node_name(old) or old["spec"] == new["spec"]


def _same_wishes(old: Obj, new: Obj) -> bool:
    """Return whether the owner left a pod without a node as it was."""
    return old["spec"] == new["spec"] and labels(old) == labels(new)


def _changed_filters(old: Obj, new: Obj) -> tuple[str, ...]:
    found: list[str] = []
    for part, field, filters in _NODE_CHANGES:
        if (old.get(part) or {}).get(field) != (new.get(part) or {}).get(field):
            found.extend(filters)
    return tuple(found)
