"""Hooks by their paths, run the way both adapters run them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from karmada.admission.context import CREATE, DELETE, UPDATE, Context, Refusal, Settings
from karmada.admission.hooks import Hook, run_mutating, run_validating
from karmada.admission.table import HOOKS
from karmada.features import default_gates
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj

BY_PATH = {hook.path: hook for hook in HOOKS}


def hook_at(path: str) -> Hook:
    return BY_PATH[f"/{path}"]


def settings_with(*gates: str, **more: Any) -> Settings:
    switched = default_gates()
    switched.set_values(dict.fromkeys(gates, True))
    numbers = count(1)
    return Settings(gates=switched, **{"new_id": lambda: f"id-{next(numbers)}", **more})


def context_of(settings: Settings, obj: Obj | None, old: Obj | None) -> Context:
    operation = DELETE if obj is None else CREATE if old is None else UPDATE
    namespace = ((obj or old or {}).get("metadata") or {}).get("namespace") or ""
    return Context(settings, operation, namespace)


Completed = Callable[..., Obj]
Refused = Callable[..., Awaitable[str]]


@pytest.fixture
def completed() -> Completed:
    """(path, object, old): the object as a mutating hook leaves it."""

    def run(path: str, obj: Obj, old: Obj | None = None, *, warnings: list[str] | None = None) -> Obj:
        made = copy_json(obj)
        context = context_of(settings_with(), made, old)
        run_mutating(hook_at(path), made, old, context)
        if warnings is not None:
            warnings += context.warnings
        return made

    return run


@pytest.fixture
def refused() -> Refused:
    """(path, object, old): the text with which a validating hook refuses, "" when it does not."""

    async def run(path: str, obj: Obj | None, old: Obj | None = None, *gates: str, **more: Any) -> str:
        try:
            settings = settings_with(*gates, **more)
            await run_validating(hook_at(path), obj or {}, old, context_of(settings, obj, old))
        except Refusal as refusal:
            return refusal.message
        return ""

    return run


@pytest.fixture
def settings() -> Settings:
    return settings_with()
