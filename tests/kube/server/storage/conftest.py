"""A fresh store of each kind, for the contract that all of them keep."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "fakes"))

from karmada.kube.server.storage.interface import Store
from karmada.kube.server.storage.open import open_store


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = open_store("memory://" if request.param == "memory" else f"sqlite://{tmp_path}/state.db")
    await store.open()
    yield store
    await store.close()
