"""What stands between the network and the handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result


class Gate(Protocol):
    """Stands between the network and the handlers; what comes in-process does not pass it."""

    async def run(self, request: Request, answer: Callable[[Request], Awaitable[Result]]) -> Result:
        """Return the response, or anything that may happen to a request; ConnectionResetError cuts the connection."""

    async def send(self, request: Request) -> None:
        """Before each piece of a watch goes out."""

    def watching(self, request: Request, begins: bool) -> None:
        """Count a watch that begins or is over."""
