"""For every test: a shared object that somebody changed fails the test that did it, and interrupts are heeded."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from karmada.kube.objects.shared import assert_unmutated, detect_mutations

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # what a shell starts in the background, and all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("KARMADA_NAMESPACE_DELETION_DELAY", "0s")  # of every process that a test starts


@pytest.fixture(autouse=True)
def _shared_objects_stay_unchanged() -> Iterator[None]:
    detect_mutations()
    yield
    assert_unmutated()
