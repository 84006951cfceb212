"""Follow-ups: what a controller would write right after an object was created, made a part of the create.

A controller in the process of the API server registers for a kind. The server then gives it each new object of that
kind, complete and valid, before it is stored, and stores the follow-up with it: one write and one watch event instead
of several, attributed to the controller in managedFields as its own writes would be. Validating admission is given the
object with it.

It is a short cut only. Where none is made (the controller is in another process or not ready, the object existed
before) the controller makes the same change by a write, so that a crash at any moment leads to the same state.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj


class FollowUp(NamedTuple):
    """The changes that one controller makes to a new object, in the form in which they are stored: valid and pruned."""

    manager: str
    changes: Obj
    """A merge patch of the object without its status."""
    status: Obj | None = None
    """The object's first status, which the create itself does not write."""


class FollowUpWriter(Protocol):
    def follow_up(self, obj: Obj, /) -> FollowUp | None:
        """Return what is to be written with this object; None: nothing.

        The object is not changed, nothing is awaited.
        """

    def abandoned(self, obj: Obj, /) -> None:
        """Forget an object with a follow-up that was not stored, or whose outcome is unknown."""


class FollowUps:
    """The controllers of one API server that follow up on creates, by kind."""

    def __init__(self) -> None:
        self._writers: dict[GVK, FollowUpWriter] = {}

    def register(self, kind: GVK, writer: FollowUpWriter) -> None:
        """Register a controller for a kind in place of an earlier one."""
        self._writers[kind] = writer

    def unregister(self, kind: GVK, writer: FollowUpWriter) -> None:
        """Has no effect when another has replaced it."""
        if self._writers.get(kind) is writer:
            del self._writers[kind]

    def of(self, kind: GVK) -> FollowUpWriter | None:
        return self._writers.get(kind)
