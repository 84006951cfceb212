"""Where replicas share the work: connections and informers only of the members that this replica handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from karmada.members.members import Members

if TYPE_CHECKING:
    from karmada.kube.runtime.sharing import Assignment


class OwnedMembers:
    """Closes the connection to a member that is another replica's from now on."""

    def __init__(self, members: Members, owns: Callable[[str], bool]) -> None:
        """`owns`: whether this replica handles the member with that name."""
        self._members = members
        self._owns = owns

    async def disown(self) -> None:
        for name in self._members.names:
            if not self._owns(name):
                self._members.release(name)

    async def take_over(self, _before: Assignment, _now: Assignment) -> None:
        """Return a member, whose connections are made when they are used."""
