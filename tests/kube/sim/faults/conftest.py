"""A whole cluster to inject faults into."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kube.sim.whole_cluster import Whole, whole_cluster


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Whole]:
    async with whole_cluster(tmp_path) as whole:
        yield whole
