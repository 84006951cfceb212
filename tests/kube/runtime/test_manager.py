from __future__ import annotations

import asyncio
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, LEASES, PODS
from karmada.kube.objects.shapes import Shape
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler, Watch
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.leader import LeaderElector
from karmada.kube.runtime.manager import LeadershipLost, Manager
from karmada.kube.runtime.queue import WorkQueue
from tests.support.eventually import eventually
from tests.support.fake_api import FakeApi


class Copier(Reconciler):
    """Keeps a ConfigMap for every Pod."""

    name = "copier"
    watches = (Watch(PODS), Watch(CONFIG_MAPS))

    def __init__(self, client: Client, manager: Manager) -> None:
        self.client = client
        self.pods = manager.informers.of(PODS)

    async def reconcile(self, key: Key) -> None:
        if self.pods.get(key) is None:
            try:
                await self.client.delete(CONFIG_MAPS, key.name, key.namespace)
            except NotFound:
                return
        else:
            try:
                await self.client.get(CONFIG_MAPS, key.name, key.namespace)
            except NotFound:
                copy = {"metadata": {"name": key.name, "namespace": key.namespace}, "data": {}}
                await self.client.create(CONFIG_MAPS, copy)


class Part:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    async def start(self) -> None:
        self.log.append(f"start {self.name}")

    async def stop(self) -> None:
        self.log.append(f"stop {self.name}")


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}}


async def test_a_controller_converges_what_is_there_and_what_comes(client: Client, fake: FakeApi) -> None:
    await client.create(PODS, pod("a"))
    manager = Manager(client)
    manager.add(Copier(client, manager), workers=2)
    before = asyncio.all_tasks()
    async with manager:
        await client.create(PODS, pod("b"))
        await eventually(lambda: len(fake.listed(CONFIG_MAPS)) == 2)
        await client.delete(PODS, "a", "ns")
        await eventually(lambda: [o["metadata"]["name"] for o in fake.listed(CONFIG_MAPS)] == ["b"])
        await client.delete(CONFIG_MAPS, "b", "ns")
        await eventually(lambda: len(fake.listed(CONFIG_MAPS)) == 1)
        assert await manager.health.ok()
    assert asyncio.all_tasks() == before
    assert fake.watchers == []


async def test_the_initial_sync_of_all_controllers_visits_each_object_once(client: Client) -> None:
    looks: list[str] = []

    def shown(obj: Obj) -> Obj:
        looks.append(obj["metadata"]["name"])
        return obj

    class Noting(Reconciler):
        watches = (Watch(PODS),)

        def __init__(self, name: str) -> None:
            self.name = name
            self.seen: list[Key] = []

        async def reconcile(self, key: Key) -> None:
            self.seen.append(key)

    await client.create(PODS, pod("a"))
    await client.create(PODS, pod("b"))
    manager = Manager(client, shapes={PODS: Shape("shown", shown, as_docs=True)})
    parts = [Noting(f"c{number}") for number in range(5)]
    for part in parts:
        manager.add(part)
    manager.informers.start()
    await manager.informers.wait_synced()
    looks.clear()
    async with manager:
        await eventually(lambda: all(part.seen == [Key("ns", "a"), Key("ns", "b")] for part in parts))
        assert looks == ["a", "b"]


async def test_existing_objects_of_small_kinds_are_delivered_before_those_of_large_ones(client: Client) -> None:
    for name in "abc":
        await client.create(PODS, pod(name))
    await client.create(CONFIG_MAPS, {"metadata": {"name": "few", "namespace": "ns"}})
    informers, seen = Informers(client), list[str]()
    for kind in (PODS, CONFIG_MAPS):
        informers.of(kind).subscribe(lambda _old, new: seen.append((new or {})["metadata"]["name"]))
    informers.start()
    await informers.wait_synced()
    seen.clear()
    await informers.deliver_existing()
    assert seen == ["few", "a", "b", "c"]
    await informers.stop()


async def test_what_is_new_is_reconciled_while_existing_objects_are_delivered_and_before_them(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_deliver, queued = asyncio.Event(), list[tuple[str, int]]()
    real = Informers.deliver_existing

    async def deliver(informers: Informers) -> None:
        if informers.of(PODS).has_handlers:
            await may_deliver.wait()
        await real(informers)

    monkeypatch.setattr(Informers, "deliver_existing", deliver)

    class Noting(Reconciler):
        name = "noting"
        watches = (Watch(PODS),)

        def __init__(self) -> None:
            self.seen: list[str] = []

        def follow_queue(self, queue: WorkQueue[Key]) -> None:
            add = queue.add_after

            def noted(key: Key, seconds: float, priority: int = 0) -> None:
                queued.append((key.name, priority))
                add(key, seconds, priority)

            monkeypatch.setattr(queue, "add_after", noted)

        async def reconcile(self, key: Key) -> None:
            self.seen.append(key.name)

    await client.create(PODS, pod("old"))
    manager = Manager(client)
    noting = Noting()
    manager.add(noting)
    starting = asyncio.ensure_future(manager.start())
    await eventually(lambda: manager.controllers["noting"].queue.takes_keys)
    await client.create(PODS, pod("new"))
    await eventually(lambda: noting.seen == ["new"])
    assert not starting.done()
    may_deliver.set()
    await starting
    await eventually(lambda: noting.seen[:2] == ["new", "old"])
    assert {name: priority < 0 for name, priority in queued if name == "old"} == {"old": True}
    assert ("new", 0) in queued
    await manager.stop()


async def test_parts_start_in_order_and_stop_in_reverse(client: Client) -> None:
    log: list[str] = []
    manager = Manager(client)
    for name in ("one", "two", "three"):
        manager.add_component(Part(name, log))
    async with manager:
        assert log == ["start one", "start two", "start three"]
    assert log[3:] == ["stop three", "stop two", "stop one"]


async def test_a_resource_that_does_not_exist_is_named_when_the_sync_takes_too_long(
    client: Client, clock: FakeClock
) -> None:
    manager = Manager(client, clock=clock, sync_timeout=60)
    manager.informers.of(GVR("example.io", "v1", "widgets"))
    starting = asyncio.ensure_future(manager.start())
    await clock.advance(61)
    with pytest.raises(TimeoutError, match=r"widgets.example.io \(the server could not find the requested resource\)"):
        await starting


async def test_a_sync_may_take_as_long_as_objects_keep_coming(client: Client, clock: FakeClock) -> None:
    manager = Manager(client, clock=clock, sync_timeout=60)
    informer = manager.informers.of(GVR("example.io", "v1", "widgets"))
    starting = asyncio.ensure_future(manager.start())
    for number in range(5):
        name = f"w{number}"
        informer.set(Key("", name), {"metadata": {"name": name}})
        await clock.advance(60)
        assert not starting.done()
    await clock.advance(60)
    with pytest.raises(TimeoutError, match="no sync within 60s"):
        await starting


async def test_a_name_can_be_taken_once(client: Client) -> None:
    manager = Manager(client)
    manager.add(Copier(client, manager))
    with pytest.raises(ValueError, match="'copier' was already added"):
        manager.add(Copier(client, manager))


async def test_only_the_leader_runs_what_needs_the_lease_and_losing_it_ends_the_run(
    client: Client, fake: FakeApi, clock: FakeClock
) -> None:
    log: list[str] = []
    managers = []
    for name in ("a", "b"):
        manager = Manager(client, clock=clock, elector=LeaderElector(client, "lock", "ns", name, clock=clock))
        manager.add_component(Part(f"everywhere {name}", log))
        manager.add_component(Part(f"leading {name}", log), needs_leader=True)
        managers.append(manager)
    runs = []
    for manager in managers:
        runs.append(asyncio.ensure_future(manager.run()))
        await clock.advance(0.1)
    assert log == ["start everywhere a", "start leading a", "start everywhere b"]
    managers[0].finish()
    await clock.advance(10)
    await runs[0]
    assert log[3:] == ["stop leading a", "stop everywhere a", "start leading b"]
    lease = await client.get(LEASES, "lock", "ns")
    await client.update(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
    await clock.advance(10)
    with pytest.raises(LeadershipLost, match="lost the lease lock"):
        await runs[1]
    assert log[6:] == ["stop leading b", "stop everywhere b"]


async def test_a_part_that_cannot_start_takes_the_others_down(client: Client) -> None:
    log: list[str] = []

    class Broken(Part):
        async def start(self) -> None:
            raise RuntimeError("broken")

    manager = Manager(client)
    manager.add_component(Part("one", log))
    manager.add_component(Broken("two", log))
    with pytest.raises(RuntimeError, match="broken"):
        async with manager:
            raise AssertionError("not reached")
    assert log == ["start one", "stop two", "stop one"]


async def test_the_lease_is_renewed_while_slow_parts_start(client: Client, clock: FakeClock) -> None:
    class Slow(Part):
        async def start(self) -> None:
            await clock.sleep(60)
            self.log.append("start slow")

    log: list[str] = []
    elector = LeaderElector(client, "lock", "ns", "a", clock=clock)
    manager = Manager(client, clock=clock, elector=elector)
    manager.add_component(Slow("slow", log), needs_leader=True)
    await manager.start()
    await clock.advance(61)
    assert log == ["start slow"]
    assert elector.leading
    await manager.stop()
    assert not elector.leading


async def test_a_reconcile_under_way_ends_at_once_when_the_lease_is_lost(
    client: Client, fake: FakeApi, clock: FakeClock
) -> None:
    ended: list[str] = []

    class Slow(Reconciler):
        name = "slow"
        watches = (Watch(CONFIG_MAPS),)

        async def reconcile(self, key: Key) -> None:
            ended.append(f"began {key.name}")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(f"ended {key.name}")

    await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "ns")
    manager = Manager(client, clock=clock, elector=LeaderElector(client, "lock", "ns", "me", clock=clock))
    manager.add(Slow())
    run = asyncio.ensure_future(manager.run())
    await clock.advance(0.1)
    await eventually(lambda: ended == ["began a"])
    lease = await client.get(LEASES, "lock", "ns")
    await client.update(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
    await clock.advance(10)  # none of the grace of an orderly stop
    assert run.done()
    with pytest.raises(LeadershipLost):
        await run
    assert ended == ["began a", "ended a"]


# teams: parts with leases of their own


def with_two_teams(client: Client, clock: FakeClock, name: str, log: list[str]) -> Manager:
    manager = Manager(client, clock=clock)
    for lease in ("controllers", "scheduler"):
        team = manager.team(LeaderElector(client, lease, "ns", name, clock=clock))
        manager.add_component(Part(f"{lease} of {name}", log), needs_leader=True, team=team)
    return manager


async def test_each_team_runs_under_its_own_lease(client: Client, clock: FakeClock) -> None:
    log: list[str] = []
    other = Manager(client, clock=clock)
    team = other.team(LeaderElector(client, "scheduler", "ns", "b", clock=clock))
    other.add_component(Part("scheduler of b", log), needs_leader=True, team=team)
    await other.start()
    await other.stood()
    both = with_two_teams(client, clock, "a", log)
    await both.start()
    await both.stood()
    assert log == ["start scheduler of b", "start controllers of a"]
    await other.stop()
    await clock.advance(5)
    assert log[2:] == ["stop scheduler of b", "start scheduler of a"]
    await both.stop()
    assert log[4:] == ["stop scheduler of a", "stop controllers of a"]


async def test_a_manager_that_loses_one_lease_stops_all_teams_and_gives_up_the_other_lease(
    client: Client, clock: FakeClock
) -> None:
    log: list[str] = []
    run = asyncio.ensure_future(with_two_teams(client, clock, "a", log).run())
    await clock.advance(0.1)
    assert log == ["start controllers of a", "start scheduler of a"]
    lease = await client.get(LEASES, "scheduler", "ns")
    await client.update(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
    await clock.advance(10)
    with pytest.raises(LeadershipLost, match=r"lost the lease scheduler$"):
        await run
    assert log[2:] == ["stop scheduler of a", "stop controllers of a"]
    assert (await client.get(LEASES, "controllers", "ns"))["spec"]["holderIdentity"] == ""
    assert (await client.get(LEASES, "scheduler", "ns"))["spec"]["holderIdentity"] == "thief"


async def test_teams_whose_leases_are_free_share_the_initial_sync(client: Client, clock: FakeClock) -> None:
    looks: list[str] = []

    def shown(obj: Obj) -> Obj:
        looks.append(obj["metadata"]["name"])
        return obj

    class Idle(Reconciler):
        watches = (Watch(PODS),)

        def __init__(self, name: str) -> None:
            self.name = name

        async def reconcile(self, key: Key) -> None:
            """Nothing to do."""

    await client.create(PODS, pod("a"))
    manager = Manager(client, clock=clock, shapes={PODS: Shape("shown", shown, as_docs=True)})
    for lease in ("one", "two", "three"):
        manager.add(Idle(lease), team=manager.team(LeaderElector(client, lease, "ns", "me", clock=clock)))
    manager.informers.start()
    await manager.informers.wait_synced()
    looks.clear()
    await manager.start()
    await manager.stood()
    assert looks == ["a"]
    await manager.stop()


async def test_what_fails_while_a_team_starts_is_raised_to_who_waits_for_it(client: Client) -> None:
    class Broken(Part):
        async def start(self) -> None:
            raise RuntimeError("broken")

    manager = Manager(client, elector=LeaderElector(client, "lock", "ns", "a"))
    manager.add_component(Broken("b", []), needs_leader=True)
    await manager.start()
    with pytest.raises(RuntimeError, match="broken"):
        await manager.stood()
    await manager.stop()
