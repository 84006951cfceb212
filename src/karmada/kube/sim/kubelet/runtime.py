"""What runs the containers of pods, behind the kubelet that reports their status.

The kubelet decides which containers should run; a runtime makes it so and observes what became of them. Without a
runtime all containers are simulated. With one, those whose image it knows are its own, and their ends and their
readiness are observed instead of being made up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

if TYPE_CHECKING:
    from karmada.kube.server.handlers.pod_logs import LogOptions
    from karmada.kube.sim.kubelet.channels import Channels


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of one run of a container."""

    attempt: int
    """Which run: the number of restarts before it."""
    exit_code: int | None = None
    """None: it runs."""
    reason: str = ""
    """Reason for its end, where the exit code does not say it."""
    message: str = ""
    started: bool = False
    ready: bool = False


class RecordedLog(Protocol):
    """The output of a container."""

    def history(self, options: LogOptions) -> bytes: ...

    def followed(self, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield what there is, then what is written, until the container ends."""


class Runtime(Protocol):
    def runs(self, container: Obj) -> bool:
        """Return whether it runs containers like this one, by their image."""

    def connect(self, changed: Callable[[Key], None], emit: Callable[[Obj, str, str, str], None]) -> None:
        """Start; `changed` is called when the observed state of a pod has changed, `emit` with events about it."""

    def sync(self, pod: Obj, wanted: Mapping[str, int], grace: float) -> None:
        """Run the wanted attempts of containers (by name) and end all others, killing them after `grace` seconds.

        It only begins what takes time; `observe` returns what became of it. The pod has its address in its status.
        """

    def observe(self, key: Key, uid: str, container: str, attempt: int) -> Observed | None:
        """None: no such run."""

    def kill(self, key: Key) -> None:
        """End the pod's containers at once; what they wrote is kept."""

    def forget(self, key: Key, uid: str = "") -> None:
        """Kill and remove whatever is there of pods of that name, except the one with this uid."""

    def log(self, pod: Obj, container: Obj, *, previous: bool) -> RecordedLog | None:
        """Return the output of the last run, or of the one before; None if the container is simulated."""

    async def exec(self, pod: Obj, container: Obj, command: list[str], streams: Channels) -> int:
        """Run a command in a container of this runtime; its exit code."""

    def address(self, pod: Obj) -> str:
        """Return the address at which its ports can be reached; empty if the pod is simulated."""
