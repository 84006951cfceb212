"""One control plane for all tests of a module that request `plane`; each leaves it empty."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from karmada.controllers.detector import detector_parts
from karmada.interpreter.interpreter import Interpreter
from tests.support.control_plane import running
from tests.support.propagation import Propagation


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates are made once."""
    return tmp_path_factory.mktemp("control-plane")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_plane(folder: Path) -> AsyncIterator[Propagation]:
    async with running(folder, lambda context: detector_parts(context, Interpreter())) as control_plane:
        yield Propagation(control_plane)


@pytest_asyncio.fixture(loop_scope="module")
async def plane(module_plane: Propagation) -> AsyncIterator[Propagation]:
    await module_plane.clear()
    yield module_plane
