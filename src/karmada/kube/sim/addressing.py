"""Address ranges of simulated clusters: each gets its own, so that no address of a pod or Service is used twice.

Only ranges that a profile does not set are chosen, when the cluster is created; from then on they are stored with it. A
hundred and twenty-eight clusters have distinct ranges; further ones share those of earlier ones.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable

import msgspec

from karmada.kube.sim.profile import Profile

_CLUSTERS = 128
_CANDIDATES: dict[str, tuple[str, ...]] = {
    "pod_cidr": tuple(f"10.{128 + (116 + number) % _CLUSTERS}.0.0/16" for number in range(_CLUSTERS)),
    "service_cidr": tuple(f"10.{(96 + number) % _CLUSTERS}.0.0/16" for number in range(_CLUSTERS)),
    "load_balancer_cidr": tuple(f"172.18.{255 - number}.0/24" for number in range(_CLUSTERS)),
}
"""The first ones are what a kubeadm cluster and kind have."""
RANGES = frozenset(_CANDIDATES)


def with_own_ranges(profile: Profile, choose: Collection[str], others: Iterable[Profile]) -> Profile:
    """Return the profile with its ranges `choose` replaced by the first that overlap with no other."""
    taken = [_network(other, name) for other in others for name in RANGES]
    taken += [_network(profile, name) for name in RANGES if name not in choose]
    chosen: dict[str, str] = {}
    for name in sorted(choose):
        chosen[name] = _free(_CANDIDATES[name], taken)
        taken.append(ipaddress.ip_network(chosen[name]))
    return msgspec.structs.replace(profile, **chosen)


def _network(profile: Profile, name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(getattr(profile, name))


def _free(candidates: tuple[str, ...], taken: list[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> str:
    same = frozenset(taken)  # most are found there; comparing with each takes long among many clusters
    for candidate in candidates:
        network = ipaddress.ip_network(candidate)
        if network not in same and not any(
            other.version == network.version and network.overlaps(other) for other in taken
        ):
            return candidate
    return candidates[0]
