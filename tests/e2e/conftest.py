"""Real programs against a real server process: kubectl, helm and the server each run as users run them."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.gvrs import NAMESPACES
from tests.e2e.fleets import QUICK, QUICK_SCALING, connected
from tests.e2e.places import Place
from tests.e2e.propagating import Propagation, propagation
from tests.e2e.sharing import Shared, shared_by, sharing_files
from tests.support.background import Background
from tests.support.programs import Program, Result, ServerProcess

OLDEST_MINOR = 26
LONGEST_FIRST = [
    "fresh_clone",
    "install_separate",
    "helm_chart",
    "container_image",
    "clusters",
    "pull_outages",
    "failover",
    "documents",
    "etcd_servers",
    "durability",
    "several_servers",
    "propagation_restarts",
    "local_up_trouble",
    "etcd_chaos",
]
"""Files that would be waited for at the end if they did not start first."""
_SHARED = pytest.StashKey[Shared]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    names = [*(f"test_{name}.py" for name in LONGEST_FIRST[:2]), *sharing_files()]
    names += [f"test_{name}.py" for name in LONGEST_FIRST[2:]]
    ranks = {name: rank for rank, name in enumerate(names)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


def pytest_group(item: pytest.Item) -> str | None:
    return sharing_files().get(item.path.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """After the last test of those that share something, and after its fixtures."""
    try:
        yield
    finally:
        if nextitem is None or shared_by(nextitem.path) != shared_by(item.path):
            item.config.stash[_SHARED].end()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SHARED] = Shared()


@pytest.fixture(scope="session")
def shared(pytestconfig: pytest.Config) -> Iterator[Shared]:
    yield pytestconfig.stash[_SHARED]
    pytestconfig.stash[_SHARED].end()  # of a session that was interrupted


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests that do not harm it; each test has a namespace of its own."""
    server = ServerProcess(tmp_path_factory.mktemp("server") / "data")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of this test's own, to be killed and restarted."""
    server = ServerProcess(tmp_path / "data")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def kubectl_path() -> str:
    """The kubectl on PATH; one too old for the commands used here has tests of its own (test_old_kubectl)."""
    path = shutil.which("kubectl")
    if path is None:
        pytest.fail("kubectl is not on PATH; install it (Debian: kubernetes-client)")
    output = subprocess.run([path, "version", "--client", "-o", "json"], capture_output=True, text=True, check=True)
    version = json.loads(output.stdout)["clientVersion"]
    if int(version["minor"].rstrip("+")) < OLDEST_MINOR:
        pytest.skip(f"kubectl 1.{OLDEST_MINOR} or newer is needed, this is {version['gitVersion']}")
    return path


@pytest.fixture(scope="session")
def kubectl(server: ServerProcess, kubectl_path: str, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program([kubectl_path], tmp_path_factory.mktemp("home"), server.kubeconfig)


@pytest.fixture(scope="session")
def place(server: ServerProcess) -> Iterator[Place]:
    """The same server without a program for every request."""
    with Background() as background:
        yield Place(background, background.enter(connected(server.kubeconfig)))


@pytest.fixture
def namespace(place: Place) -> Iterator[str]:
    """A fresh namespace, deleted afterwards without waiting for it."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    place.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    place.delete(NAMESPACES, name)


@pytest.fixture
def kn(kubectl: Program, namespace: str) -> Callable[..., Result]:
    """kubectl in this test's namespace."""

    def run(*arguments: str, **kwargs: Any) -> Result:
        return kubectl("-n", namespace, *arguments, **kwargs)

    return run


@pytest.fixture(scope="module")
def three_members(shared: Shared, tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Propagation:
    """One control plane with three members for all tests that do not harm them; each leaves them as it found them."""
    flags = (*QUICK, *QUICK_SCALING, "--feature-gates=MultiClusterService=true,FederatedQuotaEnforcement=true")
    return shared.get(
        "three_members", lambda: propagation(tmp_path_factory.mktemp("three-members"), kubectl_path, flags=flags)
    )
