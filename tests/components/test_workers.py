"""The processes of `karmada --workers N`, as their parent starts them and cleans up after them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.components.election import CONTROLLERS, NAMESPACE, of_the_only_server
from karmada.components.server import control_plane_server
from karmada.components.workers import WorkerOptions, Workers
from karmada.kube.client.client import Client
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects import meta
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.runtime.membership import GROUP
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.running import run_server

FORMER = of_the_only_server(CONTROLLERS, "store").identity
ENDS_WITH_ITS_INPUT = "import sys; print('works', flush=True); sys.stdin.read()"


class Sleepers(Workers):
    """Workers that only wait for their end."""

    def _command(self, number: int) -> list[str]:
        assert number
        return [sys.executable, "-S", "-c", ENDS_WITH_ITS_INPUT]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with run_server(
        control_plane_server(ServerConfig(data_dir=tmp_path, storage="memory://", port=0, controllers=False))
    ) as server:
        yield server


async def hold(client: Client, name: str, holder: str, group: str = "") -> None:
    labels = {GROUP: group} if group else {}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 60}
    await client.create(LEASES, {"metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}, "spec": spec})


async def leases(client: Client) -> set[str]:
    return {meta.name(lease) for lease in (await client.list(LEASES, NAMESPACE))["items"]}


async def test_a_worker_that_dies_is_started_again_and_its_lease_is_gone(
    server: ApiServer, capfd: pytest.CaptureFixture[str]
) -> None:
    client = server.client(user_agent="tests")
    workers = Sleepers(server, WorkerOptions(2, []), FORMER, RealClock())
    await workers.start()
    try:
        await eventually(lambda: len(workers.pids) == 2)
        kubeconfig = server.config.data_dir / "workers" / "karmada-worker-1.kubeconfig"
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        assert load_config(kubeconfig).server == server.url
        for number in (1, 2):
            await hold(client, f"karmada-worker-{number}-12345678", "it", CONTROLLERS)
        first = workers.pids
        workers._processes[1].kill()
        await eventually(lambda: workers.pids.get(1) not in (None, first[1]))
        assert await leases(client) == {"karmada-worker-2-12345678"}
        assert workers.pids[2] == first[2]
        page = server.metrics.expose()[0].decode()
        assert 'karmada_worker_restarts_total{worker="karmada-worker-1"} 1' in page
    finally:
        await workers.stop()
    assert not workers.pids
    assert "[worker 1] works" in capfd.readouterr().err


@cases((FORMER, {"elsewhere-1-abc"}), ("", {"elsewhere-1-abc", "karmada-worker-7-abc", CONTROLLERS}))
async def test_what_a_crashed_parent_left_is_cleared_where_no_other_uses_the_store(
    former: str, left: set[str], server: ApiServer
) -> None:
    client = server.client(user_agent="tests")
    await hold(client, CONTROLLERS, FORMER)
    for name in ("karmada-worker-7-abc", "elsewhere-1-abc"):
        await hold(client, name, name, CONTROLLERS)
    workers = Sleepers(server, WorkerOptions(1, []), former, RealClock())
    await workers.start()
    try:
        assert await leases(client) == left
    finally:
        await workers.stop()
