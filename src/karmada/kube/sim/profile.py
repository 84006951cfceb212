"""What a simulated cluster is made of, as plain data that is stored beside its state.

A profile has the settings that are fixed before the cluster starts; load, behaviours and faults, which change while it
runs, are kept elsewhere. Delays are distributions: a fixed number of seconds, or a range.
"""

from __future__ import annotations

import ipaddress
import math
from random import Random
from typing import Annotated, Literal

import msgspec

from karmada.kube.objects.names import dns1123_label
from karmada.kube.objects.quantity import Quantity

DEFAULT_VERSION = "1.36"
VERSIONS = tuple(f"1.{minor}" for minor in range(27, 38))
Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
FAKE_NODE_LABEL = "type"
FAKE_NODE_VALUE = "sim"


class Delay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A duration in seconds: `low` when fixed, evenly or log-normally spread between `low` and `high` otherwise."""

    low: float
    high: float = 0.0
    shape: Literal["fixed", "uniform", "lognormal"] = "fixed"

    def draw(self, random: Random) -> float:
        if self.shape == "fixed" or self.high <= self.low:
            return self.low
        if self.shape == "uniform":
            return random.uniform(self.low, self.high)
        return self._lognormal(random)

    def _lognormal(self, random: Random) -> float:
        """Nineteen of twenty draws lie between `low` and `high`; a few are far above."""
        low, high = math.log(max(self.low, 1e-6)), math.log(self.high)
        return math.exp(random.gauss((low + high) / 2, (high - low) / 3.92))


class Latencies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Durations of the operations that take time in a real cluster."""

    schedule: Delay = Delay(0.01)
    pull: Delay = Delay(0.2, 0.8, "uniform")
    start: Delay = Delay(0.1)
    ready: Delay = Delay(0.2)
    stop: Delay = Delay(0.1)
    load_balancer: Delay = Delay(0.5)
    provision: Delay = Delay(0.3)


NO_DELAY = Delay(0.0)
INSTANT = Latencies(*(NO_DELAY for _ in msgspec.structs.fields(Latencies)))
"""For tests of order, not of duration."""


class Taint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str = ""


class NodePool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes that are alike. Their names are <cluster>-<pool>-1, -2, …; zones are given to them in turn.

    `cpu` and `memory` are what pods can use. The default is the lower bound of a grade of the usual resource models, so
    that they count an empty node fully.
    """

    name: str = "node"
    count: Count = 3
    cpu: str = "4"
    memory: str = "32Gi"
    pods: Count = 110
    ephemeral_storage: str = "100Gi"
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    zones: tuple[str, ...] = ()
    region: str = ""
    provider: str = ""
    architecture: str = "amd64"
    extended: dict[str, str] = {}
    """Further resources, such as nvidia.com/gpu."""

    def __post_init__(self) -> None:
        wrong = dns1123_label(self.name)
        if wrong:
            raise ValueError(f'pool name "{self.name}": {wrong[0]}')
        amounts = {"cpu": self.cpu, "memory": self.memory, "ephemeral_storage": self.ephemeral_storage, **self.extended}
        for what, amount in amounts.items():
            try:
                Quantity.parse(amount)
            except ValueError:
                raise ValueError(f'pool "{self.name}": {what} "{amount}" is not a quantity such as 4 or 16Gi') from None


class StorageClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = "standard"
    default: bool = True
    provisioner: str = "sim.io/local"
    reclaim: Literal["Delete", "Retain"] = "Delete"
    binding: Literal["Immediate", "WaitForFirstConsumer"] = "WaitForFirstConsumer"
    expandable: bool = True


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    seed: int = 0
    """The seed of all random values, including the cluster's uid."""
    version: str = DEFAULT_VERSION
    pod_cidr: str = "10.244.0.0/16"
    service_cidr: str = "10.96.0.0/12"
    load_balancer_cidr: str = "172.18.255.0/24"
    node_cidr: str = "172.18.0.0/16"
    pools: tuple[NodePool, ...] = (NodePool(),)
    labels: dict[str, str] = {}
    """Labels of the cluster itself, for its registration; nodes have those of their pool."""
    region: str = ""
    zone: str = ""
    provider: str = ""
    latencies: Latencies = Latencies()
    storage_classes: tuple[StorageClass, ...] = (StorageClass(),)
    load_balancers: Literal["ip", "hostname", "never"] = "ip"
    metrics: bool = True
    """Serve metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io."""
    first_sample: Seconds = 15.0
    """How long after its start a container is measured for the first time."""
    real_heartbeats: bool = False
    """Write every node's Lease every ten seconds, even while no client reads it."""
    system_pods: bool = True
    """Have kube-dns in kube-system, as tools expect."""
    without: tuple[str, ...] = ()
    """Group-versions that this cluster does not serve, such as batch/v1."""

    def __post_init__(self) -> None:
        for field in ("pod_cidr", "service_cidr", "load_balancer_cidr", "node_cidr"):
            try:
                ipaddress.ip_network(getattr(self, field))
            except ValueError as error:
                raise ValueError(f"{field}: {error}") from None
        if self.version not in VERSIONS:
            raise ValueError(f'version "{self.version}" is not from {VERSIONS[0]} to {VERSIONS[-1]}')

    @property
    def minor(self) -> int:
        return int(self.version.split(".")[1])
