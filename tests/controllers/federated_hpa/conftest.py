"""One control plane with two members for the tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.controllers.federated_hpa.scaling_plane import ScalingPlane, scaling_plane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ScalingPlane]:
    async with scaling_plane(tmp_path_factory.mktemp("scaling"), "m1", "m2") as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def two(shared_plane: ScalingPlane) -> AsyncIterator[ScalingPlane]:
    """Members m1 and m2, with nothing in them."""
    yield shared_plane
    await shared_plane.clear()
