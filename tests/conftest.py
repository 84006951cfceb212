"""For every test: a shared object that somebody changed fails the test that did it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from karmada.kube.objects.shared import assert_unmutated, detect_mutations


@pytest.fixture(autouse=True)
def _shared_objects_stay_unchanged() -> Iterator[None]:
    detect_mutations()
    yield
    assert_unmutated()
