"""Of several processes with the same parts one works: the all-in-one takes the leases that the components take."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from karmada.components.controlplane import ControlPlane
from karmada.components.election import CONTROLLERS, NAMESPACE, SCHEDULER, scheduler_lease
from karmada.components.process import Process
from karmada.components.scheduler import scheduler_process
from karmada.features import default_gates
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvrs import LEASES, NAMESPACES
from karmada.kube.objects.times import micro_time
from karmada.kube.runtime.manager import Manager
from karmada.kube.server.config import ServerConfig
from karmada.scheduler.service.core import Options
from tests.support.cases import cases
from tests.support.etcd_cluster import EtcdCluster
from tests.support.eventually import eventually
from tests.support.running import run_component, unhurried

SCHEDULING = "default-scheduler-resourcebindings"


@asynccontextmanager
async def all_in_one(folder: Path, storage: str = "memory://") -> AsyncIterator[ControlPlane]:
    plane = ControlPlane(ServerConfig(data_dir=folder, storage=storage, port=0))
    try:
        await plane.start()
        yield plane
    finally:
        await plane.stop()


@asynccontextmanager
async def scheduler_beside(plane: ControlPlane) -> AsyncIterator[Process]:
    config = load_config(plane.server.kubeconfig)
    process = scheduler_process(config, Options(), default_gates(), election=unhurried(SCHEDULER))
    async with run_component(process):
        yield process


async def holder(plane: ControlPlane, lease: str) -> str:
    found = await plane.server.client(user_agent="tests").get(LEASES, lease, NAMESPACE)
    return str(found["spec"]["holderIdentity"])


def works(manager: Manager | None, name: str) -> bool:
    return manager is not None and manager.controllers[name].queue.takes_keys


async def test_the_all_in_one_holds_both_leases_when_it_is_ready(folder: Path) -> None:
    async with all_in_one(folder) as plane:
        system = await plane.server.client(user_agent="tests").get(NAMESPACES, "kube-system")
        identity = f"karmada_{system['metadata']['uid']}"
        assert [await holder(plane, lease) for lease in (CONTROLLERS, SCHEDULER)] == [identity, identity]
        assert works(plane.manager, SCHEDULING)
        assert works(plane.manager, "binding-controller")


async def test_a_scheduler_beside_the_all_in_one_stands_by(folder: Path) -> None:
    async with all_in_one(folder) as plane, scheduler_beside(plane) as other:
        await eventually(lambda: other.manager.informers.synced)
        await eventually(lambda: other.manager._stood.is_set())
        assert works(plane.manager, SCHEDULING)
        assert not works(other.manager, SCHEDULING)


async def test_the_all_in_one_does_not_schedule_while_another_scheduler_does(tmp_path: Path) -> None:
    storage = f"sqlite://{tmp_path}/state.db"
    async with all_in_one(tmp_path, storage) as plane:
        await plane.manager.stop()
        client = plane.server.client(user_agent="tests")
        lease = await client.get(LEASES, SCHEDULER, NAMESPACE)
        held = {"holderIdentity": "another", "renewTime": micro_time(0), "leaseDurationSeconds": 3600}
        await client.update(LEASES, {**lease, "spec": {**lease["spec"], **held}})
    async with all_in_one(tmp_path, storage) as plane:
        assert works(plane.manager, "binding-controller")
        assert not works(plane.manager, SCHEDULING)
        assert await holder(plane, SCHEDULER) == "another"


async def test_a_crashed_all_in_one_takes_its_own_leases_over_at_once(tmp_path: Path) -> None:
    storage = f"sqlite://{tmp_path}/state.db"
    async with all_in_one(tmp_path, storage) as plane:
        before = [await holder(plane, lease) for lease in (CONTROLLERS, SCHEDULER)]
        for team in plane.manager._teams:
            team.elector = None  # as if it had no time to release them
    async with all_in_one(tmp_path, storage) as plane:
        assert [await holder(plane, lease) for lease in (CONTROLLERS, SCHEDULER)] == before
        assert works(plane.manager, SCHEDULING)


async def test_of_two_on_one_etcd_each_lease_has_one_holder_and_the_other_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ControlPlane, "_election", lambda _self, lease: unhurried(lease))
    etcd = EtcdCluster(tmp_path / "etcd")
    etcd.start()
    try:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(all_in_one(tmp_path / "a", etcd.url))
            await eventually(lambda: works(first.manager, SCHEDULING))
            shutil.copytree(tmp_path / "a" / "pki", tmp_path / "b" / "pki")
            async with all_in_one(tmp_path / "b", etcd.url) as second:
                await eventually(lambda: second.manager is not None and second.manager._stood.is_set())
                assert not works(second.manager, SCHEDULING)
                assert not works(second.manager, "binding-controller")
                await stack.aclose()  # it releases its leases
                await eventually(lambda: works(second.manager, SCHEDULING))
                await eventually(lambda: works(second.manager, "binding-controller"))
    finally:
        etcd.stop()


@cases(("default-scheduler", "karmada-scheduler"), ("batch", "karmada-scheduler-batch"))
def test_schedulers_of_different_names_have_different_leases(scheduler: str, lease: str) -> None:
    assert scheduler_lease(scheduler) == lease
