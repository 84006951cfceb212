from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.scheduling_plane import Scheduling, scheduling


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Scheduling]:
    """A control plane with the default scheduler."""
    async with scheduling(folder) as found:
        yield found
