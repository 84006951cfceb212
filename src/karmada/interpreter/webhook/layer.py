"""The layer of webhooks: one POST for one operation on one object.

Which webhook is called for a kind is decided once and kept until the configurations change. Any failure fails the
operation; its text says which webhook and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from karmada.api.interpreter_context import InterpreterResponse, Operation
from karmada.interpreter import operations
from karmada.interpreter.dependencies import verify_dependencies
from karmada.interpreter.operations import InterpreterError, Replicas
from karmada.interpreter.requirements import with_canonical_quantities
from karmada.interpreter.webhook import messages
from karmada.interpreter.webhook.hooks import Hook, compile_hooks
from karmada.interpreter.webhook.messages import CallFailed, NoResponse
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj


class Post(Protocol):
    """Sends a body to a webhook, and returns the JSON object of its 2xx response; raises NoResponse."""

    async def __call__(self, hook: Hook, body: bytes, /) -> Obj: ...


class Webhooks:
    """A Layer. Before `load` it raises InterpreterError."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self.hooks: list[Hook] | None = None
        self._chosen: dict[tuple[GVK, Operation], Hook | None] = {}

    def load(self, configurations: Iterable[Obj]) -> None:
        """Use these webhooks, and no others."""
        self.hooks = compile_hooks(configurations)
        self._chosen = {}

    @property
    def remote(self) -> bool:
        return bool(self.hooks)

    def enabled(self, gvk: GVK, operation: Operation) -> bool:
        return self._hook(gvk, operation) is not None

    def _hook(self, gvk: GVK, operation: Operation) -> Hook | None:
        if self.hooks is None:
            raise InterpreterError("not yet ready to handle request")
        key = gvk, operation
        if key not in self._chosen:
            self._chosen[key] = next((hook for hook in self.hooks if hook.matches(gvk, operation)), None)
        return self._chosen[key]

    async def get_replicas(self, obj: Obj) -> Replicas:
        hook, found = await self._call(operations.INTERPRET_REPLICA, obj)
        needs = found.replica_requirements
        assert found.replicas is not None
        return Replicas(found.replicas, None if needs is None else _canonical(hook, needs.to_obj()))

    async def get_components(self, obj: Obj) -> list[Obj]:
        hook, found = await self._call(operations.INTERPRET_COMPONENT, obj)
        components = [component.to_obj() for component in found.components or ()]
        for component in components:
            if component.get("replicaRequirements"):
                component["replicaRequirements"] = _canonical(hook, component["replicaRequirements"])
        return components

    async def revise_replica(self, obj: Obj, replicas: int) -> Obj:
        return await self._patched(operations.REVISE_REPLICA, obj, replicas=replicas)

    async def retain(self, desired: Obj, observed: Obj) -> Obj:
        return await self._patched(operations.RETAIN, desired, observed=observed)

    async def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj:
        return await self._patched(operations.AGGREGATE_STATUS, obj, items=items)

    async def get_dependencies(self, obj: Obj) -> list[Obj]:
        _hook, found = await self._call(operations.INTERPRET_DEPENDENCY, obj)
        dependencies = [dependency.to_obj() for dependency in found.dependencies or ()]
        verify_dependencies(dependencies)
        return dependencies

    async def reflect_status(self, obj: Obj) -> Obj | None:
        _hook, found = await self._call(operations.INTERPRET_STATUS, obj)
        return found.raw_status

    async def interpret_health(self, obj: Obj) -> bool:
        _hook, found = await self._call(operations.INTERPRET_HEALTH, obj)
        return bool(found.healthy)

    async def _patched(self, operation: Operation, obj: Obj, **more: Any) -> Obj:
        hook, found = await self._call(operation, obj, **more)
        try:
            return messages.patched(obj, found)
        except ValueError as error:
            raise InterpreterError(f'the patch that webhook "{hook.id}" returned cannot be applied: {error}') from error

    async def _call(self, operation: Operation, obj: Obj, **more: Any) -> tuple[Hook, InterpreterResponse]:
        hook = self._hook(gvk_of(obj), operation)
        if hook is None:
            raise InterpreterError(f"no webhook for {operation} of {obj.get('kind')}")
        return hook, await self._response(hook, operation, messages.request(operation, obj, **more))

    async def _response(self, hook: Hook, operation: Operation, request: Obj) -> InterpreterResponse:
        try:
            answer = await self._post(hook, messages.body(hook.versions, request))
            return messages.response(answer, operation, request["uid"])
        except NoResponse as error:
            raise CallFailed(hook.id, str(error)) from error


def _canonical(hook: Hook, requirements: Obj) -> Obj:
    try:
        return with_canonical_quantities(requirements)
    except ValueError as error:
        raise CallFailed(hook.id, f"failed to call webhook: {error}") from error
