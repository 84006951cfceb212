"""Replicas that share work: every shard has one owner while members join, leave, crash and pause."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.client.fencing import HEADER, FencingToken
from karmada.kube.client.transport import Call, ConnectionFailed, WatchEvent
from karmada.kube.objects import meta
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Fenced
from karmada.kube.objects.gvrs import LEASES, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Reconciler, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.manager import LeadershipLost, Manager
from karmada.kube.runtime.membership import GROUP, MEMBERS, Membership
from karmada.kube.runtime.sharing import by_namespace, owner_of
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.handlers.fencing import refusal
from tests.support.fake_api import FakeApi, FakeTransport

SYSTEM = "system"
NAMESPACES = [f"team-{number}" for number in range(6)]


class StandingClock:
    """A clock that can stand still, as that of a suspended machine does."""

    def __init__(self, clock: FakeClock, running: asyncio.Event) -> None:
        self._clock, self._running = clock, running
        self._stood_at = 0.0

    def stop(self) -> None:
        self._stood_at = self._clock.monotonic()

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic() if self._running.is_set() else self._stood_at

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        await self._running.wait()


class Network(FakeTransport):
    """To the API, with the server's part of fencing; watches stand still while the replica is paused."""

    def __init__(self, api: FakeApi, running: asyncio.Event) -> None:
        super().__init__(api)
        self.guard: Membership | None = None
        self.connected = True
        self.answer_late: Callable[[], Awaitable[None]] | None = None
        self._running = running

    async def call(self, call: Call) -> Any:
        if not self.connected:
            raise ConnectionFailed("cut off")
        if self.guard is not None and call.method != "GET":
            token = FencingToken.parse(self.guard.check()[HEADER])
            await asyncio.sleep(0)
            why = refusal(token, self.api.objects.get((LEASES, token.namespace, token.name)))
            if why:
                self.guard.was_refused()
                raise Fenced(why)
        answer = await super().call(call)
        if self.answer_late is not None:
            await self.answer_late()
        return answer

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(call):
            await self._running.wait()
            yield event


class Labeller(Reconciler):
    """Notes on every Pod that it was handled, and counts how often."""

    name = "labeller"
    watches = (Watch(PODS),)
    workers = 4
    options = ControllerOptions(shard_of=by_namespace)

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.pods = replica.manager.informers.of(PODS)
        self.disowned: list[str] = []

    async def reconcile(self, key: Key) -> None:
        replica = self._replica
        replica.active[key.namespace] += 1
        replica.plane.check_owners()
        try:
            await replica.clock.sleep(replica.plane.work_seconds)
            pod = self.pods.get(key)
            if pod is not None and meta.annotations(pod).get("handled") is None:
                note = {"metadata": {"annotations": {"handled": replica.name}}}
                version = meta.resource_version(pod)
                note["metadata"]["resourceVersion"] = version  # type: ignore[assignment]
                await replica.client.patch(PODS, key.name, key.namespace, note, type="merge")
        finally:
            replica.active[key.namespace] -= 1

    def disown(self, owns: Callable[[Key], bool]) -> None:
        self.disowned = [namespace for namespace in NAMESPACES if not owns(Key(namespace, ""))]


class Replica:
    def __init__(self, plane: Plane, name: str) -> None:
        self.name, self.plane = name, plane
        self.running = asyncio.Event()
        self.running.set()
        self.clock = StandingClock(plane.clock, self.running)
        self.active: Counter[str] = Counter()
        self.network = Network(plane.api, self.running)
        self.client = Client(self.network)
        self.leases = Network(plane.api, self.running)
        self.manager = Manager(self.client, clock=self.clock)
        self.membership = Membership(
            Client(self.leases), self.manager.informers, "workers", name, SYSTEM, clock=self.clock
        )
        self.network.guard = self.membership
        team = self.manager.sharing_team(self.membership, self.membership)
        self.controller = self.manager.add(Labeller(self), team=team)
        self.task = asyncio.create_task(self.manager.run())

    @property
    def reconciler(self) -> Labeller:
        assert isinstance(self.controller.reconciler, Labeller)
        return self.controller.reconciler

    @property
    def owned(self) -> set[str]:
        return {namespace for namespace in NAMESPACES if self.membership.owns(f"namespace/{namespace}")}

    @property
    def is_member(self) -> bool:
        """By the API, which decides."""
        return (LEASES, SYSTEM, self.name) in self.plane.api.objects

    def pause(self) -> None:
        self.clock.stop()
        self.running.clear()

    def resume(self) -> None:
        self.running.set()

    async def crash(self) -> None:
        """Nothing it had a mind to do is done any more."""
        self.network.connected = self.leases.connected = False
        await self.leave()

    async def leave(self) -> None:
        """Stopping takes time, which only the clock makes pass."""
        self.running.set()
        leaving = asyncio.create_task(cancel_and_wait(self.task))
        await self.plane.until(leaving.done)


class Plane:
    def __init__(self, api: FakeApi, clock: FakeClock) -> None:
        self.api, self.clock = api, clock
        self.replicas: dict[str, Replica] = {}
        self.client = Client(FakeTransport(api))
        self._made = 0
        self.work_seconds = 0.05
        """How long a reconcile takes."""

    async def add(self, *names: str) -> None:
        for name in names:
            self.replicas[name] = Replica(self, name)
        await self.clock.advance(1)

    async def create_pod(self, namespace: str) -> None:
        self._made += 1
        await self.client.create(PODS, {"metadata": {"name": f"pod-{self._made}", "namespace": namespace}})

    @property
    def members(self) -> list[Replica]:
        return [replica for replica in self.replicas.values() if replica.is_member]

    def check_owners(self) -> None:
        """No two members work in one namespace at the same time."""
        busy = Counter(space for replica in self.members for space, count in replica.active.items() if count)
        assert not [space for space, count in busy.items() if count > 1]

    def owned(self) -> list[str]:
        return sorted(namespace for replica in self.members for namespace in replica.owned)

    def lease(self, name: str) -> Obj:
        return self.api.objects[LEASES, SYSTEM, name]

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> float:
        """How long it took, by the clock."""
        started = self.clock.monotonic()
        while not condition():
            assert self.clock.monotonic() - started < seconds, "it did not happen"
            await self.clock.advance(0.1)
        return self.clock.monotonic() - started


@asynccontextmanager
async def running_plane() -> AsyncIterator[Plane]:
    plane = Plane(FakeApi(), FakeClock())
    try:
        yield plane
    finally:
        for replica in plane.replicas.values():
            await replica.crash()


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with running_plane() as plane:
        yield plane


async def test_members_divide_the_work_and_each_says_so_on_its_lease(plane: Plane) -> None:
    await plane.add("a", "b", "c")
    await plane.until(lambda: plane.owned() == NAMESPACES)
    assert {replica.name: replica.owned for replica in plane.members} == {
        name: {space for space in NAMESPACES if owner_of(f"namespace/{space}", "abc") == name} for name in "abc"
    }
    lease = plane.lease("a")
    assert lease["metadata"]["labels"] == {GROUP: "workers"}
    assert lease["metadata"]["annotations"] == {MEMBERS: "a,b,c"}
    assert lease["spec"]["holderIdentity"] == plane.replicas["a"].membership.identity


async def test_what_exists_in_a_shard_that_is_gained_is_reconciled(plane: Plane) -> None:
    for namespace in NAMESPACES:
        await plane.create_pod(namespace)
    await plane.add("a")
    pods = plane.api.listed
    await plane.until(lambda: all("handled" in meta.annotations(pod) for pod in pods(PODS)))


async def test_a_member_that_gives_work_up_drains_it_first_and_starts_a_new_epoch(plane: Plane) -> None:
    await plane.add("a")
    await plane.until(lambda: plane.owned() == NAMESPACES)
    assert plane.lease("a")["spec"]["leaseTransitions"] == 0
    moving = next(space for space in NAMESPACES if owner_of(f"namespace/{space}", "ab") == "b")
    first, plane.work_seconds = plane.replicas["a"], 5
    await plane.create_pod(moving)
    await plane.until(lambda: bool(first.active[moving]))
    second = plane.replicas["b"] = Replica(plane, "b")
    await plane.until(lambda: moving in second.owned)
    assert not first.active[moving], "the reconcile that was under way had ended"
    await plane.until(lambda: plane.owned() == NAMESPACES)
    assert plane.lease("a")["spec"]["leaseTransitions"] == 1
    assert moving in plane.replicas["b"].owned
    assert moving in first.reconciler.disowned


async def test_a_member_that_leaves_hands_over_at_once(plane: Plane) -> None:
    await plane.add("a", "b")
    await plane.until(lambda: plane.owned() == NAMESPACES)
    await plane.replicas["a"].leave()
    assert await plane.until(lambda: plane.replicas["b"].owned == set(NAMESPACES)) < 1


async def test_what_a_crashed_member_had_waits_for_its_lease_to_expire(plane: Plane) -> None:
    await plane.add("a", "b")
    await plane.until(lambda: plane.owned() == NAMESPACES)
    await plane.replicas["a"].crash()
    took = await plane.until(lambda: plane.replicas["b"].owned == set(NAMESPACES))
    assert 10 < took < 15 + 2 * 2.5


async def test_a_member_that_cannot_renew_stops_before_another_starts(plane: Plane) -> None:
    await plane.add("a", "b")
    await plane.until(lambda: plane.owned() == NAMESPACES)
    first, second = plane.replicas["a"], plane.replicas["b"]
    first.leases.connected = False
    await plane.until(lambda: not first.membership.leading)
    with pytest.raises(Fenced, match="must not write any more"):
        await first.client.create(PODS, {"metadata": {"name": "late", "namespace": "team-0"}})
    assert second.owned < set(NAMESPACES)
    await plane.until(lambda: second.owned == set(NAMESPACES))
    with pytest.raises(LeadershipLost):
        await first.task


async def test_a_membership_counts_from_before_the_renewal_however_late_its_answer_comes(plane: Plane) -> None:
    """The others count from when they see the Lease change."""
    await plane.add("a")
    await plane.until(lambda: plane.owned() == NAMESPACES)
    member, answered = plane.replicas["a"], asyncio.Event()

    async def late() -> None:
        await plane.clock.sleep(6)
        member.leases.connected = False
        answered.set()

    before, member.leases.answer_late = plane.lease("a"), late
    await plane.until(lambda: plane.lease("a") != before)
    renewed = plane.clock.monotonic()
    await plane.until(answered.is_set)
    await plane.until(lambda: not member.membership.leading)
    assert plane.clock.monotonic() - renewed < 10.5


async def test_a_write_of_a_paused_member_is_refused_once_its_work_is_anothers(plane: Plane) -> None:
    await plane.add("a", "b")
    await plane.until(lambda: plane.owned() == NAMESPACES)
    first, second = plane.replicas["a"], plane.replicas["b"]
    first.pause()
    await plane.until(lambda: second.owned == set(NAMESPACES))
    assert first.membership.leading, "it believes so: its clock stood still"
    with pytest.raises(Fenced, match="gone"):
        await first.client.create(PODS, {"metadata": {"name": "late", "namespace": "team-0"}})
    first.resume()
    await plane.until(lambda: first.task.done())
    assert isinstance(first.task.exception(), LeadershipLost)


async def test_a_lease_that_was_renewed_meanwhile_is_not_deleted(plane: Plane) -> None:
    await plane.add("a", "b")
    await plane.until(lambda: plane.owned() == NAMESPACES)
    stale = plane.lease("b")
    await plane.clock.advance(3)
    await plane.replicas["a"].membership._delete(stale)  # as one does whose watch delivered nothing since
    assert plane.replicas["b"].is_member
    await plane.replicas["a"].membership._delete(plane.lease("b"))
    assert not plane.replicas["b"].is_member


ACTS = st.sampled_from(["add", "crash", "leave", "pause", "resume", "pods", "wait"])


@settings(max_examples=25, deadline=None)
@given(history=st.lists(st.tuples(ACTS, st.integers(0, 5)), min_size=4, max_size=14))
def test_nothing_is_lost_or_done_by_two_in_any_history_of_replicas(history: list[tuple[str, int]]) -> None:
    asyncio.run(play(history))


async def play(history: list[tuple[str, int]]) -> None:
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(running_plane())
        await plane.add("r0", "r1", "r2")
        for number, (act, which) in enumerate(history):
            await ACTIONS[act](plane, which, number)
            plane.check_owners()
        for replica in plane.replicas.values():
            replica.resume()
        await plane.add("last")
        await plane.until(lambda: plane.owned() == NAMESPACES, 120)
        handled = plane.api.listed
        await plane.until(lambda: all("handled" in meta.annotations(pod) for pod in handled(PODS)))
        writes = Counter(
            (new["metadata"]["name"]) for _, gvr, old, new in plane.api.history if gvr == PODS and old and new
        )
        assert all(count == 1 for count in writes.values()), "each Pod is handled once"


def alive(plane: Plane, which: int) -> Replica | None:
    replicas = [replica for replica in plane.replicas.values() if not replica.task.done()]
    return replicas[which % len(replicas)] if replicas else None


async def _add(plane: Plane, _which: int, number: int) -> None:
    await plane.add(f"n{number}")


async def _crash(plane: Plane, which: int, _number: int) -> None:
    if (replica := alive(plane, which)) is not None:
        await replica.crash()


async def _leave(plane: Plane, which: int, _number: int) -> None:
    if (replica := alive(plane, which)) is not None:
        await replica.leave()


async def _pause(plane: Plane, which: int, _number: int) -> None:
    if (replica := alive(plane, which)) is not None:
        replica.pause()


async def _resume(plane: Plane, which: int, _number: int) -> None:
    if (replica := alive(plane, which)) is not None:
        replica.resume()


async def _pods(plane: Plane, _which: int, _number: int) -> None:
    for namespace in NAMESPACES:
        await plane.create_pod(namespace)


async def _wait(plane: Plane, which: int, _number: int) -> None:
    await plane.clock.advance(4 * which)


ACTIONS: dict[str, Callable[[Plane, int, int], Awaitable[None]]] = {
    "add": _add,
    "crash": _crash,
    "leave": _leave,
    "pause": _pause,
    "resume": _resume,
    "pods": _pods,
    "wait": _wait,
}
