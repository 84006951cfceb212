"""Steps that are taken back, newest first, when something after them fails or the user interrupts it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from karmada.joining.join import Progress
from karmada.joining.pull.objects import Placed
from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.runtime.writes import delete_if_exists

_UNKNOWN_OUTCOME = 500
"""From this code on, a failed request may have had its effect."""
Step: TypeAlias = Callable[[], Awaitable[object]]


class Undo:
    def __init__(self) -> None:
        self._steps: list[tuple[str, Step]] = []

    def __bool__(self) -> bool:
        return bool(self._steps)

    def add(self, what: str, step: Step) -> None:
        """Add a step; `what` is left behind when it fails."""
        self._steps.append((what, step))

    def delete(self, client: Client, placed: Placed) -> None:
        self.add(str(placed), lambda: delete_if_exists(client, placed.gvr, placed.name, placed.namespace))

    async def after(self, client: Client, placed: Placed, writing: Awaitable[object]) -> None:
        """Write an object, to be deleted when a later step fails. What the server refused was not created."""
        self.delete(client, placed)
        try:
            await writing
        except ApiError as error:
            if error.http_code < _UNKNOWN_OUTCOME:
                self._steps.pop()
            raise

    async def run(self, report: Progress) -> None:
        """Undo every step, whatever happens to the others."""
        while self._steps:
            what, step = self._steps.pop()
            try:
                await step()
            except (ApiError, ConnectionFailed, TimeoutError) as error:
                report(f"{what} could not be deleted: {error}")


@asynccontextmanager
async def undone_on_failure(report: Progress, started: Callable[[], None]) -> AsyncIterator[Undo]:
    """Undo; `started` is called before, and what could not be undone is reported."""
    undo = Undo()
    try:
        yield undo
    except BaseException:
        if undo:
            started()
            await undo.run(report)
        raise
