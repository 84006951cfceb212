"""The leases of the control plane: of several processes with the same parts, one runs them and the others stand by.

The controllers run under the Lease `karmada-controller-manager`, the scheduler `default-scheduler` under the Lease
`karmada-scheduler`, the descheduler under `karmada-descheduler`; the all-in-one takes those of what it runs, so that it
and a component in another process never do the same work.
"""

from __future__ import annotations

import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.objects.clock import Clock
    from karmada.kube.runtime.leader import LeaderElector
    from karmada.kube.runtime.manager import Elector
    from karmada.kube.runtime.metrics import Metrics

NAMESPACE: Final = "karmada-system"
CONTROLLERS: Final = "karmada-controller-manager"
SCHEDULER: Final = "karmada-scheduler"
DESCHEDULER: Final = "karmada-descheduler"
DEFAULT_SCHEDULER: Final = "default-scheduler"


def scheduler_lease(scheduler: str) -> str:
    """Return the lease of a scheduler by its name: schedulers of different names work side by side."""
    return SCHEDULER if scheduler == DEFAULT_SCHEDULER else f"{SCHEDULER}-{scheduler}"


def process_identity() -> str:
    """Return a unique identity of this process."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class LocalLease:
    """Where the second lease of a TwoServerElector is."""

    client: Client
    name: str
    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """A lease and how it is held; times in seconds."""

    name: str
    namespace: str = NAMESPACE
    identity: str = ""
    """Who holds it; empty: an identity of this process alone."""
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    renew_period: float | None = None
    """How often it is renewed, when that is not every `retry_period`."""

    local: LocalLease | None = None
    """For an agent, which goes on while the control plane is away: a second lease, in its cluster."""

    def elector(self, client: Client, clock: Clock, metrics: Metrics) -> Elector:
        from karmada.kube.runtime.paired_electors import TwoServerElector

        lease = self.lease(client, clock, metrics)
        if self.local is None:
            return lease
        where = self.local
        local = self._lease(where.client, where.name, where.namespace, lease.identity, clock, metrics)
        return TwoServerElector(lease, local, clock)

    def lease(self, client: Client, clock: Clock, metrics: Metrics) -> LeaderElector:
        """Return the one in the control plane."""
        return self._lease(client, self.name, self.namespace, self.identity or process_identity(), clock, metrics)

    def _lease(
        self, client: Client, name: str, namespace: str, identity: str, clock: Clock, metrics: Metrics
    ) -> LeaderElector:
        from karmada.kube.runtime.leader import LeaderElector

        return LeaderElector(
            client,
            name,
            namespace,
            identity,
            clock=clock,
            lease_duration=self.lease_duration,
            renew_deadline=self.renew_deadline,
            retry_period=self.retry_period,
            renew_period=self.renew_period,
            metrics=metrics,
        )


def of_the_only_server(name: str, store: str) -> Election:
    """Return the lease of the process whose own server is the only one on its store.

    While that process is down, the API is unreachable, so no other waits for the lease to expire: it lasts long and is
    renewed rarely, since every renewal is a write to the disk. The identity is the store's: only one process can have
    the store open, so a lease with this identity is that of a process that has ended, and is taken over at once.
    """
    return Election(
        name=name,
        identity=f"karmada_{store}",
        lease_duration=60.0,
        renew_deadline=40.0,
        retry_period=2.0,
        renew_period=20.0,
    )
