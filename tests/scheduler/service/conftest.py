from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.scheduling_plane import Scheduling, scheduling


@pytest.fixture(scope="session")
def plane_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates are made once for all tests."""
    return tmp_path_factory.mktemp("scheduling")


@pytest.fixture
async def plane(plane_folder: Path) -> AsyncIterator[Scheduling]:
    """A control plane with the default scheduler."""
    async with scheduling(plane_folder) as found:
        yield found
