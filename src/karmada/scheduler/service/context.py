"""The surroundings that a scheduler needs from the process it runs in."""

from __future__ import annotations

from typing import Protocol

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.runtime.events import EventRecorder
from karmada.kube.runtime.features import FeatureGates
from karmada.kube.runtime.follow_ups import FollowUps
from karmada.kube.runtime.informers import Informers


class Context(Protocol):
    @property
    def informers(self) -> Informers: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def gates(self) -> FeatureGates: ...

    @property
    def follow_ups(self) -> FollowUps: ...

    def connect(self, name: str, /) -> Client:
        """Return a client that writes under this name."""
        ...

    def recorder(self, component: str) -> EventRecorder:
        """Return one for each name; the assembly of the process starts and stops it."""
        ...
