from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from control_plane import running
from karmada.controllers.detector import detector_parts
from karmada.interpreter.interpreter import Interpreter
from propagation import Propagation


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates are made once."""
    return tmp_path_factory.mktemp("control-plane")


@pytest.fixture
async def plane(folder: Path) -> AsyncIterator[Propagation]:
    async with running(folder, lambda context: detector_parts(context, Interpreter())) as control_plane:
        propagation = Propagation(control_plane)
        await propagation.rest()
        yield propagation
