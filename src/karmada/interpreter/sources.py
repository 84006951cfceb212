"""What users declare about kinds, as the control plane has it now: the uppermost layers of the interpreter.

A change is loaded when its event arrives, before any controller that it concerns reconciles again. What runs scripts is
not imported before there is one, nor what calls webhooks before one is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from karmada.api.config import ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration
from karmada.interpreter.interpreter import Interpreter, Layer
from karmada.interpreter.webhook.hooks import Hook
from karmada.interpreter.webhook.layer import Webhooks
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers

if TYPE_CHECKING:
    from karmada.interpreter.lua.layer import Declarative
    from karmada.interpreter.webhook.calling import Calls


class Sources:
    """A component that is synced before the controllers start."""

    name = "interpreter-sources"

    def __init__(self, informers: Informers, interpreter: Interpreter, lower: Sequence[Layer] = ()) -> None:
        """`lower` are the layers below those that users declare."""
        self._informers = informers
        self._interpreter = interpreter
        self._lower = tuple(lower)
        self._customizations = informers.of(ResourceInterpreterCustomization.gvr)
        self._configurations = informers.of(ResourceInterpreterWebhookConfiguration.gvr)
        self._scripts: Declarative | None = None
        self._webhooks = Webhooks(self._post)
        self._calls: Calls | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self._arrange()

    async def start(self) -> None:
        self._unsubscribe = [
            self._customizations.add_handler(self._customization_changed),
            self._configurations.add_handler(self._configuration_changed),
        ]
        self._customizations.start()
        self._configurations.start()
        await self._customizations.wait_synced()
        await self._configurations.wait_synced()
        self._load_webhooks()

    async def stop(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._calls is not None:
            await self._calls.close()

    # what users declare

    def _customization_changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is None or new is None or old.get("spec") != new.get("spec"):
            self._load_scripts(self._customizations.list())

    def _load_scripts(self, customizations: Sequence[Obj]) -> None:
        if self._scripts is None:
            from karmada.interpreter.lua.layer import Declarative

            self._scripts = Declarative()
        self._scripts.load(customizations)
        self._arrange()

    def _configuration_changed(self, old: Obj | None, new: Obj | None) -> None:
        changed = old is None or new is None or old.get("webhooks") != new.get("webhooks")
        if changed and self._webhooks.hooks is not None:
            self._load_webhooks()

    def _load_webhooks(self) -> None:
        self._webhooks.load(self._configurations.list())
        self._arrange()

    def _arrange(self) -> None:
        """Layers that have nothing to say are left out; webhooks that are not known yet may have."""
        scripts = () if self._scripts is None else (self._scripts,)
        webhooks = () if self._webhooks.hooks == [] else (self._webhooks,)
        self._interpreter.layers = (*scripts, *webhooks, *self._lower)

    async def _post(self, hook: Hook, body: bytes) -> Obj:
        if self._calls is None:
            from karmada.interpreter.webhook.calling import Calls

            self._calls = Calls(self._informers)
        return await self._calls.post(hook, body)
