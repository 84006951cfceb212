from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.dashboard_client import DashboardPlane, dashboard_plane


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[DashboardPlane]:
    """A dashboard that only reads, on a control plane without clusters; nobody is logged in."""
    async with dashboard_plane(tmp_path) as found:
        yield found
