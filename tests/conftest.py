"""For every test: changing a shared object fails the test that did it, interrupts work, and speed is not judged."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
import uvloop
import yaml

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.doc import assert_unmutated, detect_mutations
from karmada.kube.server.storage import memory
from tests.support import forking
from tests.support.collector import collect_rarely, free_the_dead, release_servers
from tests.support.drawing import ignore_constants, register_profiles
from tests.support.rsa_keys import reuse_keys

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # what a shell starts in the background, and all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # what nohup starts; programs of tests heed it, but not the tests
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)

os.environ.setdefault("KARMADA_NAMESPACE_DELETION_DELAY", "0s")  # of every process that a test starts
os.environ.setdefault("GOGC", "off")  # a kubectl that does not collect garbage takes a quarter less CPU time;
os.environ.setdefault("GOMEMLIMIT", "128MiB")  # an etcd does when it has so much
os.fsync = lambda fd: None  # noqa: ARG005 - without power there is no test either; a server would sync 30 files
memory.pack = bytes  # type: ignore[assignment,attr-defined]  # compressing takes a sixth of a server's start
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # type: ignore[misc]  # charts are long: a tenth of the time
yaml.SafeDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # type: ignore[misc]
collect_rarely()
register_profiles()
reuse_keys()
pytest_plugins = ["tests.forked_workers", "tests.flakes"]
LONGEST_FIRST = [
    "linearity",
    "propagation_measured",
    "failover_histories",
    "phases",
    "register_command",
    "simulate_agrees",
    "etcd_store",
    "agent_outages",
    "full_disk",
    "webhooks_at_work",
    "unregister_command",
    "process_runtime",
    "describe_command",
    "informer_convergence",
]
"""Files that would be waited for at the end if they did not start first."""


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("hypothesis_profile") != "random":
        ignore_constants()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {f"test_{name}.py": rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.getoption("forks") > 1 and sys.platform == "linux":
        forking.share()
        session.config.add_cleanup(forking.stop)
    free_the_dead()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Free the servers of a file at its end; otherwise their objects are examined after every test to come."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            free_the_dead()


@pytest.hookimpl(optionalhook=True)  # older versions of the plug-in use the loop of asyncio
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests run on the event loop of our programs."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of all servers of a module, whose certificates are made once."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def _shared_objects_stay_unchanged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up first and so torn down last: the servers of the test are freed here, while they are young, and what they
    shared is examined once, when it dies. The test itself would hold them for longer."""
    detect_mutations()
    yield
    request.node.funcargs.clear()
    release_servers()
    gc.collect(1)
    assert_unmutated()
