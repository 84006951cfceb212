"""VMs that wait for the next script: making one costs as much as a hundred short calls.

Nothing of a run stays in a VM but compiled scripts. The one used last is used next, because its memory is warm.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from karmada.interpreter.lua.vm import VM

CAPACITY = 10


class Pool:
    """Any number of VMs may be in use; `capacity` of them are kept. For any number of threads."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._idle: list[VM] = []
        self.made = 0
        self.reused = 0
        self.kept = 0
        self.dropped = 0

    @contextmanager
    def vm(self) -> Iterator[VM]:
        try:
            vm = self._idle.pop()
            self.reused += 1
        except IndexError:
            vm = VM()
            self.made += 1
        try:
            yield vm
        finally:
            if vm.broken or len(self._idle) >= self._capacity:
                self.dropped += 1
            else:
                self._idle.append(vm)
                self.kept += 1


SHARED = Pool()
