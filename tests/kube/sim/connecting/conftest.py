"""An API server with the way into pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kube.sim.connecting.pods_reached import Cluster, cluster


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path) as running:
        yield running
