"""What the next step of a pod depends on besides the pod, and the events that it emits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.runtime import Observed
from karmada.kube.sim.profile import Latencies


class PodEvent(NamedTuple):
    """An event about the pod."""

    type: str
    reason: str
    message: str


@dataclass(slots=True)
class NodeContext:
    """The state of a pod's node at a moment."""

    now: float
    """Wall time, for events and status."""
    tick: float
    """Monotonic time, for what is due."""
    latencies: Latencies
    random: Random
    images: set[str]
    """Images that are on the node; a pulled one is added."""
    mount_error: str = ""
    """Why the pod's volumes cannot be mounted."""
    config_errors: Mapping[str, str] = field(default_factory=dict)
    """Why a container cannot be created."""
    resizes: bool = True
    runs: Callable[[Obj], bool] = lambda _spec: False
    """True if a runtime runs a container; all others are simulated."""
    observed: Mapping[str, Observed] = field(default_factory=dict)
    """Containers whose state is not made up: they are run, or were ended through their terminal."""
