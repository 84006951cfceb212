"""What users declare about kinds, as the control plane has it now: the uppermost layers of the interpreter.

A change is loaded when its event arrives, before any controller that it concerns reconciles again. What runs scripts is
not imported before there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from karmada.api.config import ResourceInterpreterCustomization
from karmada.interpreter.interpreter import Interpreter, Layer
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers

if TYPE_CHECKING:
    from karmada.interpreter.lua.layer import Declarative


class Sources:
    """A component that is synced before the controllers start."""

    name = "interpreter-sources"

    def __init__(self, informers: Informers, interpreter: Interpreter, lower: Sequence[Layer] = ()) -> None:
        """`lower` are the layers below those that users declare."""
        self._interpreter = interpreter
        self._lower = tuple(lower)
        self._customizations = informers.of(ResourceInterpreterCustomization.gvr)
        self._scripts: Declarative | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        interpreter.layers = self._lower

    async def start(self) -> None:
        self._unsubscribe = [self._customizations.add_handler(self._changed)]
        self._customizations.start()
        await self._customizations.wait_synced()

    async def stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is None or new is None or old.get("spec") != new.get("spec"):
            self._load(self._customizations.list())

    def _load(self, customizations: Sequence[Obj]) -> None:
        if self._scripts is None:
            from karmada.interpreter.lua.layer import Declarative

            self._scripts = Declarative()
        self._scripts.load(customizations)
        self._interpreter.layers = (self._scripts, *self._lower)
