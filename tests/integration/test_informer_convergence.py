"""Whatever happens to a server and to the connections to it, an informer ends up with what the server has."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.errors import AlreadyExists, NotFound
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.sim.clocks import ClusterClock
from tests.support.eventually import eventually
from tests.support.ports import free_port

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["create", "update", "delete"]), st.integers(0, 5)),
        st.tuples(st.sampled_from(["break", "restart", "compact", "snapshot", "go back"]), st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


class Scenario:
    """A server that can be restarted on its data, or on a snapshot of it, and a writer.

    One informer takes in what is written at once, and its handler keeps its own account.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._port = free_port()
        self._snapshot = data_dir.parent / "snapshot"
        self.received: dict[str, str] = {}
        self.wrote: Callable[[Obj], None]

    async def start(self) -> None:
        config = ServerConfig(data_dir=self._data_dir, port=self._port, controllers=False)
        self.server = ApiServer(config)
        await self.server.start()

    def record(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.received[new["metadata"]["name"]] = new["metadata"]["resourceVersion"]
        else:
            assert old is not None
            self.received.pop(old["metadata"]["name"])

    async def step(self, what: str, number: int, count: int) -> None:
        client, name = self.server.client(), f"item-{number}"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": str(count)}}
        try:
            if what == "create":
                self.wrote(await client.create(CONFIG_MAPS, body, "default"))
            elif what == "update":
                self.wrote(await client.patch(CONFIG_MAPS, name, "default", {"data": {"n": str(count)}}))
            elif what == "delete":
                await client.delete(CONFIG_MAPS, name, "default")
        except (AlreadyExists, NotFound):
            return
        if what == "break":
            self.server.cache.end_watches()
        elif what == "restart":
            await self.server.stop()
            await self.start()
        elif what == "compact":
            await self.server.store.compact(self.server.store.revision)
        elif what == "snapshot":
            shutil.rmtree(self._snapshot, ignore_errors=True)
            shutil.copytree(self._data_dir, self._snapshot)
        elif what == "go back" and self._snapshot.exists():
            await self.server.stop()
            shutil.rmtree(self._data_dir)
            shutil.copytree(self._snapshot, self._data_dir)
            await self.start()

    def stored(self) -> dict[str, str]:
        entries = self.server.cache.collection(CONFIG_MAPS.group_resource).list("default")
        return {entry.name: str(entry.revision) for entry in entries}


async def run(data_dir: Path, steps: list[tuple[str, int]]) -> None:
    scenario = Scenario(data_dir)
    await scenario.start()
    remote = Client(HttpTransport(load_config(scenario.server.kubeconfig)))
    clock = ClusterClock(rate=20.0)  # where restarts are slow, their back-off grows to 45 seconds
    informers = [Informer(remote, CONFIG_MAPS, "default", clock=clock) for _ in range(2)]
    informers[0].add_handler(scenario.record)
    scenario.wrote = informers[0].wrote
    for informer in informers:
        informer.start()
    try:
        for count, (what, number) in enumerate(steps):
            await scenario.step(what, number, count)
        for informer in informers:
            await eventually(lambda informer=informer: known(informer) == scenario.stored())
        assert scenario.received == scenario.stored()
    finally:
        for informer in informers:
            await informer.stop()
        await remote.close()
        await scenario.server.stop()


def known(informer: Informer) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in informer.list()}


@settings(
    max_examples=12, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_an_informer_equals_the_server_after_any_history(certificates: Path, steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        data_dir = Path(place) / "data"
        data_dir.mkdir(mode=0o700)
        if (certificates / "pki").exists():
            shutil.copytree(certificates / "pki", data_dir / "pki")
        asyncio.run(run(data_dir, steps))


@pytest.mark.parametrize("order", [["compact", "restart"], ["restart", "compact", "break"], ["compact", "break"]])
def test_an_informer_recovers_when_its_version_is_gone(certificates: Path, tmp_path: Path, order: list[str]) -> None:
    steps = [("create", n) for n in range(4)] + [("update", 1), ("delete", 2)]
    steps += [(what, 0) for what in order] + [("update", 0), ("create", 2), ("delete", 3)]
    asyncio.run(run(tmp_path / "data", steps))


def test_an_informer_gives_up_what_a_snapshot_does_not_have(certificates: Path, tmp_path: Path) -> None:
    kept = [("create", 0), ("create", 1), ("create", 2), ("snapshot", 0)]
    lost = [("update", 0), ("delete", 1), ("create", 3), ("update", 2), ("update", 2)]
    asyncio.run(run(tmp_path / "data", [*kept, *lost, ("go back", 0)]))
    asyncio.run(run(tmp_path / "more" / "data", [*kept, *lost, ("go back", 0), *lost, ("go back", 0), ("create", 4)]))
