"""Controllers: a reconciler turns a key into a result; a `Controller` does everything around that.

A reconciler declares what it watches: a resource, the changes that matter, and a mapping from the changed object to
keys. `Controller` subscribes to the shared informers, puts the keys into its queue and runs
`reconcile` in up to N workers, never twice at once for a key. A failed key is retried with back-off; a result may
requeue the key after some time. Keys may be divided into lanes, each with N workers, so that one that hangs blocks only
its own (see queue). A key that hung the event loop is left alone (see exclusion).

Where replicas share the work (see membership), keys are divided into shards, and a controller reconciles those of the
shards that its process owns: others are not queued, and none is started that was queued before the shard was lost. A
shard that is gained has its existing objects queued, as at a start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import ApiError, Conflict, Fenced
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.back_off import BackOff
from karmada.kube.runtime.current_work import Work, describes_work
from karmada.kube.runtime.event_filter import (
    ALL,
    EventFilter,
    EventType,
    Handler,
    Predicate,
    Subscription,
    Values,
    concerned,
)
from karmada.kube.runtime.exclusion import Exclusion, name_of_delivery
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of, name_of
from karmada.kube.runtime.logging import Logger, get_logger
from karmada.kube.runtime.quarantine import fingerprint
from karmada.kube.runtime.queue import Priority, WorkQueue
from karmada.kube.runtime.sharing import Assignment, by_controller
from karmada.kube.runtime.time_slice import TimeSlice, in_slices

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from karmada.kube.runtime.membership import Membership
    from karmada.kube.runtime.metrics import ControllerMetrics

Mapper: TypeAlias = Callable[[Obj], Iterable[Key]]


@dataclass(frozen=True, slots=True)
class Result:
    """`after`: requeue in so many seconds, with `priority`; `backoff`: requeue after the key's back-off.

    `forget`: the key's next failure starts the back-off anew.
    """

    after: float | None = None
    backoff: bool = False
    priority: int = Priority.NEW
    forget: bool = True


Done: Final = Result()


def requeue(after: float, priority: int = Priority.NEW) -> Result:
    return Result(after=after, priority=priority)


Retry: Final = Result(backoff=True)
Parked: Final = Result(forget=False)
"""Nothing was done: the queue adds the key again when what it waits for is there (see WorkQueue.park and enter)."""


class Terminal(Exception):
    """A failure that a retry cannot fix: it is logged, and the key waits for the next change."""


def own_key(obj: Obj) -> Iterable[Key]:
    return (key_of(obj),)


def _none(_obj: Obj) -> bool:
    return False


class Enqueue(Protocol):
    """Puts a key into a controller's queue."""

    def __call__(self, key: Key, priority: int = Priority.NEW, /) -> None: ...


Walk: TypeAlias = Callable[[Obj | None, Obj | None, Enqueue], Awaitable[None]]


def walk_index(informer: Informer, index: str, value_of: Callable[[Obj], str]) -> Walk:
    """Return a walk that enqueues the objects which an index of an informer has for the value of a changed object."""

    async def walk(old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        for value in {value_of(obj) for obj in (old, new) if obj is not None}:
            async for key in in_slices(informer.keys_by_index(index, value)):
                add(key)

    return walk


@dataclass(frozen=True, slots=True)
class Watch:
    """Which changes trigger a reconcile, and of which keys.

    `map_to` is called with the old and the new object of a change, so that a key which an object no longer refers to is
    reconciled, too.
    """

    resource: GVR | GVK
    on: tuple[EventType, ...] = ALL
    changed: tuple[str, ...] = ()
    """Modifications trigger it only if one of these fields differs: "spec", "metadata.deletionTimestamp"."""
    having: tuple[Values, str] | None = None
    """Objects trigger it only if this function gave them this value before the change, or does so after it.

    Where many watch a resource, and each few of its objects, they share one function.
    """
    when: Predicate | None = None
    """Decides what the three above leave open."""
    map_to: Mapper = own_key
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    shape: Shape | None = None
    priority: int | Callable[[Obj], int] = Priority.NEW
    """Priority of the keys: fixed, but BACKLOG for objects that exist at the start; or by the object."""
    pending: Callable[[Obj], bool] = _none
    """Which of the objects that exist at the start were not handled before it: these are as urgent as changes."""
    after: float = 0.0
    """Seconds to wait for more changes of the same key, so that they are reconciled together."""
    walk: Walk | None = None
    """Enqueues keys, in place of `map_to`, where these are found by going through many objects: in slices (see
    Informer.scan), in a task of the controller, for one change after the other. Objects that exist at the start
    trigger none, since all keys are queued then."""

    @property
    def filter(self) -> EventFilter:
        return EventFilter(self.on, self.changed, self.having)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """Options that some reconcilers want of their controller."""

    needs_leader: bool = True
    """True if it runs only while its process holds the lease."""
    queue_name: str = ""
    """Name of its queue in metrics, when not its own; several may share one."""
    lane_of: Callable[[Key], str] | None = None
    """Divides the keys into lanes, so that work that hangs in one blocks no other; None: one lane."""
    shard_of: Callable[[Key], str] | None = None
    """Divides the keys among replicas that share the work; None: one replica has them all."""
    grace: float = 10.0
    """Seconds that a reconcile under way may take when the controller stops."""


class Reconciler(ABC):
    """The part of a controller that its author writes: a name, what it watches, and `reconcile`."""

    name: str
    watches: Sequence[Watch] = ()
    workers: int = 1
    """How many keys are reconciled at the same time, in each lane."""
    options: ControllerOptions = ControllerOptions()
    """Options that its controller should have."""
    metrics: Collector | None = None
    """Figures of its own, for /metrics; several may share them."""

    @abstractmethod
    async def reconcile(self, key: Key, /) -> Result | None:
        """Make what is there as it should be; None is Done."""

    def attach(self, add: Enqueue, /) -> None:  # noqa: B027 - most have watches only
        """Take `add` before the start, for keys that come from elsewhere than the watches."""

    def follow_queue(self, queue: WorkQueue[Key], /) -> None:  # noqa: B027
        """Take the queue before the start, to report on it or to steer it."""

    def existing(self) -> Iterable[Key]:
        """Return the keys of all existing objects that come from elsewhere than the watches."""
        return ()

    def about(self, _key: Key, /) -> Obj | None:
        """Return the object that a key is about, if no watch has it under the key."""
        return None

    def disown(self, owns: Callable[[Key], bool], /) -> None:  # noqa: B027
        """Drop what is kept for keys that were lost to another replica."""

    async def stop(self) -> None:  # noqa: B027
        """Release what is held, when the controller has stopped."""


class Controller:
    def __init__(
        self,
        reconciler: Reconciler,
        informers: Informers,
        *,
        workers: int | None = None,
        clock: Clock | None = None,
        metrics: ControllerMetrics | None = None,
        back_off: BackOff | None = None,
        sharing: Membership | None = None,
    ) -> None:
        """`sharing`: the membership by which replicas share the work; None: this one does it all."""
        self.name = reconciler.name
        self.reconciler = reconciler
        self.workers = workers if workers is not None else reconciler.workers
        self.needs_leader = reconciler.options.needs_leader
        self._metrics = metrics
        self._informers = informers
        clock = clock or informers.clock
        self._clock = clock
        self._sharing = sharing
        self._whole = by_controller(self.name)
        self.queue: WorkQueue[Key] = WorkQueue(
            self.name,
            self._reconcile if sharing is None else self._reconcile_owned,
            limit=self.workers,
            lane_of=reconciler.options.lane_of,
            order_of=name_of,
            clock=clock,
            back_off=back_off or BackOff(),
            metrics=metrics.queue if metrics else None,
        )
        if metrics is not None:
            metrics.follow(self.queue, self.workers)
        self.log: Logger = get_logger("controller").bind(controller=self.name)
        self._starting = False
        self._unsubscribe: list[Callable[[], None]] = []
        self._exclusion = Exclusion(self.name, self.queue, self.fingerprint)
        self._held = self._exclusion.held
        reconciler.attach(self.add)
        reconciler.follow_queue(self.queue)
        self.sources = [(watch, self._informer(watch)) for watch in reconciler.watches]
        if sharing is not None:
            sharing.add(self)

    def _informer(self, watch: Watch) -> Informer:
        return self._informers.of(
            watch.resource, watch.namespace, watch.label_selector, watch.field_selector, watch.shape
        )

    def add(self, key: Key, priority: int = Priority.NEW, /) -> None:
        """Queue a key."""
        if self._owns(key):
            self.queue.add(key, priority)

    # life

    def subscribe(self) -> None:
        """Get changes from now on, and existing objects when the informers deliver them."""
        self._starting = True
        self._unsubscribe.append(self._exclusion.follow())
        for watch, informer in self.sources:
            informer.start()
            self._unsubscribe.append(informer.subscribe(self._handler(watch, informer), watch.filter))

    async def start(self) -> None:
        """Start the workers once the informers have synced; unless it has subscribed, with all existing objects queued.

        Who calls `subscribe` has the informers deliver what exists, to all subscribers at once.
        """
        if not self._starting:
            self.subscribe()
            for _, informer in self.sources:
                await informer.deliver_existing()
        for _, informer in self.sources:
            await informer.wait_synced()
        self._starting = False
        self.queue.start()

    async def stop(self, grace: float | None = None) -> None:
        """Take no new keys; a reconcile under way may finish within `grace` seconds."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        await self.queue.stop(self.reconciler.options.grace if grace is None else grace)
        await self.reconciler.stop()

    @property
    def healthy(self) -> bool:
        """Return whether no worker has failed."""
        return not self.queue.failed

    # what a key is about

    def _own(self, key: Key) -> list[Obj | None]:
        """Return the objects that its watches have under a key; None for a deleted one."""
        return [informer.get(key) for watch, informer in self.sources if watch.map_to is own_key and not watch.walk]

    def about(self, key: Key) -> Obj | None:
        """Return the object that a key is about, if that is known."""
        return next((obj for obj in self._own(key) if obj is not None), None) or self.reconciler.about(key)

    def fingerprint(self, key: Key) -> str:
        """Return what changes with the spec and metadata of what a key is about; empty if that is not known."""
        own = self._own(key)
        return fingerprint(*own) if own else ""

    # events to keys

    def _handler(self, watch: Watch, informer: Informer, takes: Callable[[Key], bool] | None = None) -> Handler:
        """Return a handler; `takes`: which keys are taken over, for existing objects; None: changes of those owned."""
        return self._exclusion.guarded(watch.resource, partial(self._handle, watch, informer, takes))

    def _handle(
        self, watch: Watch, informer: Informer, takes: Callable[[Key], bool] | None, old: Obj | None, new: Obj | None
    ) -> None:
        """Queue the keys that a change concerns, or let a walk find them."""
        exists = takes is not None or self._starting or informer.delivering
        if (watch.walk is not None and exists) or (watch.when is not None and not watch.when(old, new)):
            return
        if watch.walk is not None:
            self.queue.add_from(partial(self._walk, watch.walk, watch, old, new))
            return
        owns = takes or (None if self._sharing is None else self._owns)
        given, own = watch.priority, watch.map_to is own_key
        for obj in (new if new is not None else old,) if own else (old, new):
            if obj is None:
                continue
            if not isinstance(given, int):
                priority = given(obj)
            else:
                priority = Priority.BACKLOG if exists and not watch.pending(obj) else given
            for key in (key_of(obj),) if own else watch.map_to(obj):
                if owns is None or owns(key):
                    self.queue.add_after(key, watch.after, priority)  # without a pause the same as add

    async def _walk(self, walk: Walk, watch: Watch, old: Obj | None, new: Obj | None) -> None:
        """Queue the keys that a change concerns as the walk of its watch finds them."""
        await walk(old, new, partial(self._add_found, watch))

    def _add_found(self, watch: Watch, key: Key, priority: int = Priority.NEW, /) -> None:
        """Queue a key that the walk of a watch has found."""
        given = watch.priority
        self.add(key, given if isinstance(given, int) and priority == Priority.NEW else priority)

    # sharing

    def _shard(self, key: Key) -> str:
        shard_of = self.reconciler.options.shard_of
        return self._whole if shard_of is None else shard_of(key)

    def _owns(self, key: Key) -> bool:
        return self._sharing is None or self._sharing.owns(self._shard(key))

    async def disown(self) -> None:
        self.reconciler.disown(self._owns)

    async def take_over(self, before: Assignment, now: Assignment) -> None:
        """Queue the existing objects of the shards that were gained."""
        shard_of = self.reconciler.options.shard_of
        if shard_of is None and (before.owns(self._whole) or not now.owns(self._whole)):
            return

        def gained(key: Key) -> bool:
            shard = self._shard(key)
            return now.owns(shard) and not before.owns(shard)

        turn = TimeSlice()
        for watch, informer in self.sources:
            if watch.walk is not None:
                continue
            subscriptions = [Subscription(self._handler(watch, informer, gained), watch.filter)]
            own = watch.map_to is own_key
            for key in informer.keys():  # noqa: SIM118 - no dict: it gives objects
                obj = informer.get(key) if not own or gained(key) else None
                for handle in () if obj is None else concerned(subscriptions, None, obj):
                    handle(None, obj)
                if turn.is_over():
                    await turn.next()
        for key in self.reconciler.existing():
            if gained(key):
                self.queue.add(key, Priority.BACKLOG)
            if turn.is_over():
                await turn.next()

    async def _reconcile_owned(self, key: Key) -> None:
        """Reconcile a key unless its shard moved to another replica after it was queued."""
        sharing = self._sharing
        assert sharing is not None
        shard = self._shard(key)
        if not sharing.begin(shard):
            self.queue.forget(key)
            return
        try:
            await self._reconcile(key)
        finally:
            sharing.end(shard)

    # workers

    async def _reconcile(self, key: Key) -> None:
        if self._held.entries and self._exclusion.covers(key):
            return
        started, outcome = self._clock.monotonic(), "error"
        try:
            outcome = self._follow_up(key, await self.reconciler.reconcile(key) or Done)
        except (Conflict, Fenced) as error:
            self.log.v(1).info("Conflict, trying again", key=str(key), err=error.message)
            self.queue.add_rate_limited(key)
        except Terminal as error:
            self.log.error("Reconcile failed for good", error, key=str(key))
            self.queue.forget(key)
        except (ApiError, ConnectionFailed, NoMatch, TimeoutError) as error:
            self.log.error("Reconcile failed", error, key=str(key), retries=self.queue.retries(key))
            self.queue.add_rate_limited(key)
        except Exception as error:
            self.log.exception("Reconcile failed", error, key=str(key), retries=self.queue.retries(key))
            self.queue.add_rate_limited(key)
        if self._metrics is not None:
            self._metrics.reconciled(outcome, self._clock.monotonic() - started)

    def _follow_up(self, key: Key, result: Result) -> str:
        if result.backoff:
            self.queue.add_rate_limited(key)
            return "requeue"
        if result.forget:
            self.queue.forget(key)
        if result.after is not None:
            self.queue.add_after(key, result.after, result.priority)
            return "requeue_after"
        return "success"


@describes_work
def _reconciled(frame: FrameType) -> Work | None:
    """Return the key that a frame reconciles."""
    if frame.f_code is not Controller._reconcile.__code__:
        return None
    controller: Controller = frame.f_locals["self"]
    key: Key = frame.f_locals["key"]
    return Work("key", str(key), controller.name, partial(controller.fingerprint, key), partial(controller.about, key))


@describes_work
def _delivered(frame: FrameType) -> Work | None:
    """Return the object that a frame delivers to a controller, or of which the change has it walk."""
    if frame.f_code not in (Controller._handle.__code__, Controller._walk.__code__):
        return None
    controller: Controller = frame.f_locals["self"]
    watch: Watch = frame.f_locals["watch"]
    old, new = frame.f_locals["old"], frame.f_locals["new"]
    name = name_of_delivery(watch.resource, new or old)
    return Work("object", name, controller.name, partial(fingerprint, new), lambda: new or old)
