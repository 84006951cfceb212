"""Two servers on one etcd: one identity, one set of addresses, one of them runs the controllers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.types import Obj
from tests.e2e.fleets import connected
from tests.e2e.propagating import CONFIG_MAPS, SERVICES
from tests.support.etcd_cluster import EtcdCluster
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, ServerProcess

pytestmark = pytest.mark.e2e


@contextmanager
def servers_on_etcd(folder: Path) -> Iterator[tuple[EtcdCluster, list[ServerProcess]]]:
    """Two servers that know of each other nothing but the store's address."""
    etcd = EtcdCluster(folder / "etcd", size=1)
    servers = [ServerProcess(folder / name) for name in ("one", "two")]
    try:
        etcd.start()
        for server in servers:
            server.arguments = ["--storage", etcd.url]
            server.start()
        yield etcd, servers
    finally:
        for server in servers:
            server.stop()
        etcd.stop()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EtcdCluster, list[ServerProcess]]]:
    """For all tests that do not harm them; each has names of its own."""
    with servers_on_etcd(tmp_path_factory.mktemp("pair")) as running:
        yield running


@pytest.fixture
def etcd(pair: tuple[EtcdCluster, list[ServerProcess]]) -> EtcdCluster:
    return pair[0]


@pytest.fixture
def servers(pair: tuple[EtcdCluster, list[ServerProcess]]) -> list[ServerProcess]:
    return pair[1]


def clients_of(servers: list[ServerProcess], kubectl_path: str, home: Path) -> list[Program]:
    return [Program([kubectl_path], home, server.kubeconfig) for server in servers]


@pytest.fixture
def clients(servers: list[ServerProcess], kubectl_path: str, tmp_path: Path) -> list[Program]:
    return clients_of(servers, kubectl_path, tmp_path)


def test_credentials_of_one_server_are_good_at_the_other(
    servers: list[ServerProcess], clients: list[Program], kubectl_path: str, tmp_path: Path
) -> None:
    one, two = clients
    crossed = tmp_path / "crossed"
    crossed.touch(mode=0o600)
    crossed.write_text(servers[0].kubeconfig.read_text().replace(servers[0].url, servers[1].url))
    assert "system:masters" in Program([kubectl_path], tmp_path, crossed)("auth", "whoami").out
    one("create", "serviceaccount", "robot")
    token = one("create", "token", "robot").out.strip()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = two("create", "-o", "json", "-f", "-", stdin=json.dumps(review)).json()
    assert answer["status"]["user"]["username"] == "system:serviceaccount:default:robot"


async def test_what_one_server_acknowledged_the_other_one_knows(servers: list[ServerProcess]) -> None:
    """At once: the next request is sent as soon as the answer is there, sooner than a program could start."""
    async with connected(servers[0].kubeconfig) as one, connected(servers[1].kubeconfig) as two:
        for number in range(10):
            space = f"n{number}"
            await one.create(NAMESPACES, {"metadata": {"name": space}})
            await two.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"a": "1"}}, space)
            await one.patch(CONFIG_MAPS, "settings", space, {"data": {"a": "2"}})
            assert (await two.get(CONFIG_MAPS, "settings", space))["data"] == {"a": "2"}
            await two.delete(CONFIG_MAPS, "settings", space)
            with pytest.raises(NotFound):
                await one.get(CONFIG_MAPS, "settings", space)


async def test_no_address_is_given_out_twice(servers: list[ServerProcess]) -> None:
    async with connected(servers[0].kubeconfig) as one, connected(servers[1].kubeconfig) as two:
        await asyncio.gather(
            *((one, two)[number % 2].create(SERVICES, node_port(number), "default") for number in range(60))
        )
        listed, _ = await one.list_all(SERVICES, "default")
    made = [service for service in listed if service["metadata"]["name"].startswith("svc-")]
    assert len(made) == 60
    assert len({service["spec"]["clusterIP"] for service in made}) == 60
    assert len({service["spec"]["ports"][0]["nodePort"] for service in made}) == 60


def node_port(number: int) -> Obj:
    name = f"svc-{number}"
    return {
        "metadata": {"name": name},
        "spec": {"type": "NodePort", "selector": {"app": name}, "ports": [{"port": 80}]},
    }


def test_when_the_server_that_runs_the_controllers_dies_the_other_takes_over(kubectl_path: str, tmp_path: Path) -> None:
    with servers_on_etcd(tmp_path) as (_, servers):
        _one_dies_and_the_other_takes_over(servers, clients_of(servers, kubectl_path, tmp_path))


def _one_dies_and_the_other_takes_over(servers: list[ServerProcess], clients: list[Program]) -> None:
    def holder() -> str:
        lease = clients[1]("-n", "kube-system", "get", "lease", "kube-controller-manager", "-o", "json", check=False)
        return lease.json()["spec"]["holderIdentity"] if lease.code == 0 else ""

    first = eventually_blocking(holder)
    eventually_blocking(lambda: clients[0]("get", "sa", "default", check=False).code == 0)
    leading = next(n for n, server in enumerate(servers) if server.process and f"_{server.process.pid}_" in first)
    servers[leading].kill()
    left = clients[1 - leading]

    def emptied() -> bool:
        return left("get", "namespace", "goner", check=False).code != 0

    left("create", "namespace", "goner")
    left("delete", "namespace", "goner", "--wait=false")
    eventually_blocking(emptied, 240)


def test_a_dump_goes_from_sqlite_to_etcd_and_back_byte_for_byte(etcd: EtcdCluster, tmp_path: Path) -> None:
    ctl = Program([sys.executable, "-m", "karmada.cli.karmadactl"], tmp_path, tmp_path / "none")
    source = tmp_path / "source.db"
    fill(source, 10_000)
    ctl("backup", str(tmp_path / "first"), "--storage", f"sqlite://{source}")
    ctl("restore", str(tmp_path / "first"), "--storage", f"{etcd.url}?prefix=/copy/", timeout=120)
    ctl("backup", str(tmp_path / "second"), "--storage", f"{etcd.url}?prefix=/copy/", timeout=120)
    ctl("restore", str(tmp_path / "second"), "--storage", f"sqlite://{tmp_path}/target.db", timeout=120)
    assert content(source) == content(tmp_path / "target.db")


def fill(path: Path, count: int) -> None:
    from karmada.kube.server.storage.sqlite import SqliteStore

    async def run() -> None:
        store = SqliteStore(path)
        await store.open()
        for first in range(0, count, 1000):
            writes = [
                store.write(f"core/configmaps/default/c{n:05d}", value(n), expected=0)
                for n in range(first, first + 1000)
            ]
            await asyncio.gather(*writes)
        await store.close()

    asyncio.run(run())


def value(number: int) -> bytes:
    meta = {"name": f"c{number:05d}", "namespace": "default", "uid": f"uid-{number}"}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"é": "x" * 200}}).encode()


def content(path: Path) -> dict[str, bytes]:
    from karmada.kube.server.storage.sqlite_reader import SqliteReader

    async def read() -> dict[str, bytes]:
        reader = SqliteReader(path)
        await reader.open()
        page = await reader.range("")
        await reader.close()
        return {stored.key: stored.value for stored in page.items}

    return asyncio.run(read())


def test_a_directory_with_other_keys_is_refused(
    etcd: EtcdCluster, servers: list[ServerProcess], tmp_path: Path
) -> None:
    other = ServerProcess(tmp_path / "stranger")
    other.start()
    other.stop()
    other.arguments = ["--storage", etcd.url]
    with pytest.raises(AssertionError, match="another control plane"):
        other.start()
