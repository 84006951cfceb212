"""Control planes with members, for those who propagate.

Starting three servers takes longer than any test; so the tests of a module share theirs, and leave it as they found it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.fleet import Fleet, fleet


@pytest.fixture(scope="session")
def fleet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates are made once for all tests."""
    return tmp_path_factory.mktemp("fleet")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_fleet(fleet_folder: Path) -> AsyncIterator[Fleet]:
    async with fleet(fleet_folder, "m1", "m2") as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def two(shared_fleet: Fleet) -> AsyncIterator[Fleet]:
    """A control plane that propagates, with the members m1 and m2; empty, and shared with the rest of the module."""
    yield shared_fleet
    await shared_fleet.clear()


@pytest_asyncio.fixture(loop_scope="module")
async def two_alone(fleet_folder: Path) -> AsyncIterator[Fleet]:
    """The same, for tests that leave it in pieces."""
    async with fleet(fleet_folder, "m1", "m2") as found:
        yield found
