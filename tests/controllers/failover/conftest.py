from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controllers.failover.failing import Failing, failing


@pytest.fixture
async def fleet(folder: Path) -> AsyncIterator[Failing]:
    async with failing(folder, "m1", "m2") as found:
        yield found
