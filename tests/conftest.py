"""For every test: changing a shared object fails the test that did it, interrupts work, and speed is not judged."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from karmada.kube.objects.shared import assert_unmutated, detect_mutations

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # what a shell starts in the background, and all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("KARMADA_NAMESPACE_DELETION_DELAY", "0s")  # of every process that a test starts
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: traversing them in every collection was a fifth of the run's CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Free the servers of a test at its end, while they are young; otherwise their objects are examined again and
    again for changes."""
    try:
        return (yield)
    finally:
        gc.collect(1)


@pytest.fixture(autouse=True)
def _shared_objects_stay_unchanged() -> Iterator[None]:
    detect_mutations()
    yield
    assert_unmutated()
