"""How replicas of the controllers share their work: under which names, and for how long a Lease holds.

The group takes the lease by which a single replica would be elected, so that `--leader-elect` and `--share-work` are
never at work at the same time (see kube/runtime/paired_electors); each member has a Lease of its own beside it.
"""

from __future__ import annotations

import socket
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from karmada.components.election import Election

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.objects.clock import Clock
    from karmada.kube.runtime.informers import Informers
    from karmada.kube.runtime.membership import Membership


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """`election` is the lease of the group; its times are those of the members' Leases, too."""

    election: Election
    replica: str = ""
    """Prefix of the names of this replica's Leases; empty: the name of the host."""

    @property
    def group_lease(self) -> Election:
        """Lease of the group, held alike for all members, each of which renews it."""
        held = self.election
        return replace(held, identity=f"{held.name}-shared", renew_period=held.lease_duration / 3)

    def membership(self, client: Client, informers: Informers, clock: Clock) -> Membership:
        """With a name of this process alone: what another had before it is not this one's."""
        from karmada.kube.runtime.membership import Membership

        election = self.election
        base = (self.replica or socket.gethostname()).lower().replace("_", "-").strip("-.")[:200]
        return Membership(
            client,
            informers,
            election.name,
            f"{base}-{uuid.uuid4().hex[:8]}",
            election.namespace,
            clock=clock,
            lease_duration=election.lease_duration,
            renew_deadline=election.renew_deadline,
            retry_period=election.retry_period,
        )
