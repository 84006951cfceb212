"""Control planes with members, for those who propagate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from propagation_plane import Fleet, fleet


@pytest.fixture(scope="session")
def fleet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates are made once for all tests."""
    return tmp_path_factory.mktemp("fleet")


@pytest.fixture
async def two(fleet_folder: Path) -> AsyncIterator[Fleet]:
    """A control plane that propagates, with the members m1 and m2."""
    async with fleet(fleet_folder, "m1", "m2") as found:
        yield found
