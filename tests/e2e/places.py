"""One API server as a test sees it: what is there, and waiting for it by watching."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from karmada.joining.waiting import wait_for
from karmada.kube.client.client import Client
from karmada.kube.objects.clock import SYSTEM
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from tests.support.background import Background
from tests.support.eventually import LIMIT

T = TypeVar("T")


class Place:
    """One API server, the control plane's or a member's; waiting is watching."""

    def __init__(self, background: Background, client: Client) -> None:
        self._background = background
        self.client = client

    def start(self, task: Coroutine[Any, Any, T]) -> Future[T]:
        """In the background, beside the test."""
        return self._background.start(task)

    def get(self, kind: GVR, name: str, namespace: str = "default") -> Obj | None:
        async def look() -> Obj | None:
            try:
                return await self.client.get(kind, name, namespace)
            except NotFound:
                return None

        return self._background.run(look())

    def list(self, kind: GVR, namespace: str = "", labels: str = "") -> list[Obj]:
        async def look() -> list[Obj]:
            items, _ = await self.client.list_all(kind, namespace, label_selector=labels)
            return items

        return self._background.run(look())

    def create(self, kind: GVR, obj: Obj, namespace: str = "") -> Obj:
        return self._background.run(self.client.create(kind, obj, namespace))

    def delete(self, kind: GVR, name: str, namespace: str = "") -> None:
        """If it is there; it is not waited for."""

        async def remove() -> None:
            with suppress(NotFound):
                await self.client.delete(kind, name, namespace)

        self._background.run(remove())

    def until(
        self,
        kind: GVR,
        name: str,
        check: Callable[[Obj], Any] = bool,
        namespace: str = "default",
        seconds: float = LIMIT,
    ) -> Obj:
        """The object, once it is there and `check` says yes of it."""
        last: Obj | None = None

        def look(found: Obj | None) -> Obj | None:
            nonlocal last
            last = found
            return found if found is not None and check(found) else None

        waiting = wait_for(self.client, kind, name, namespace, look, clock=SYSTEM, seconds=seconds)
        try:
            return self._background.run(waiting, seconds + 10)
        except TimeoutError:
            raise AssertionError(f"{kind.resource} {name} did not become so within {seconds:g} s: {last}") from None

    def until_gone(self, kind: GVR, name: str, namespace: str = "default", seconds: float = LIMIT) -> None:
        last: Obj | None = None

        def look(found: Obj | None) -> bool | None:
            nonlocal last
            last = found
            return True if found is None else None

        waiting = wait_for(self.client, kind, name, namespace, look, clock=SYSTEM, seconds=seconds)
        try:
            self._background.run(waiting, seconds + 10)
        except TimeoutError:
            raise AssertionError(f"{kind.resource} {name} was still there after {seconds:g} s: {last}") from None
