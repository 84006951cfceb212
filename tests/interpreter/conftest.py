"""The native layer behind a guard: a call that changes what it was given fails the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karmada.features import default_gates
from karmada.interpreter.native.layer import Native
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json


class Guarded:
    def __init__(self, native: Native) -> None:
        self._native = native

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._native, name)

        def call(*args: Any) -> Any:
            before = copy_json(args)
            result = method(*args)
            assert copy_json(args) == before, f"{name} changed what it was given"
            return result

        return call


@pytest.fixture
def native(clock: FakeClock) -> Any:
    return Guarded(Native(clock))


@pytest.fixture
def quota_native() -> Any:
    """With quotas in mind."""
    gates = default_gates()
    gates.set("ResourceQuotaEstimate=true")
    return Guarded(Native(gates=gates))
