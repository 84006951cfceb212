"""Addresses for clusters that run processes: a block of the loopback network for each, on the whole machine.

A block is 127.N.0.0/16, divided into ranges for pods, Services, nodes and load balancers. Whoever uses it listens on a
port of its last address, so that no two simulators on a machine use the same block, and it is free again when its
owner dies. The block of a cluster is stored with its profile.
"""

from __future__ import annotations

import ipaddress
import socket
import zlib
from typing import NamedTuple

import msgspec

from karmada.kube.sim.profile import Profile

_BLOCKS = range(16, 255)
"""127.0.0.0/12 is left to others: 127.0.0.1, Debian's 127.0.1.1, local name servers."""
_LOCK_PORT = 51_427
_LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


class NoAddresses(Exception):
    """No block of the loopback network can be used; the message is for the user."""


class Block(NamedTuple):
    number: int
    lock: socket.socket

    def release(self) -> None:
        self.lock.close()


def in_block(profile: Profile, number: int) -> Profile:
    """Return the profile with all its ranges in the block."""
    return msgspec.structs.replace(
        profile,
        pod_cidr=f"127.{number}.0.0/17",
        service_cidr=f"127.{number}.128.0/18",
        node_cidr=f"127.{number}.192.0/19",
        load_balancer_cidr=f"127.{number}.224.0/20",
    )


def block_of(profile: Profile) -> int | None:
    """Return the number of the block that a profile's ranges are in; None if they are not loopback addresses."""
    address = ipaddress.ip_network(profile.pod_cidr).network_address
    return address.packed[1] if address in _LOOPBACK else None


def claim(number: int) -> Block:
    """NoAddresses if somebody else uses the block, or the machine has only 127.0.0.1."""
    lock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        lock.bind((f"127.{number}.255.254", _LOCK_PORT))
        lock.listen(1)
    except OSError as error:
        lock.close()
        raise NoAddresses(
            f"the addresses 127.{number}.0.0/16 cannot be used ({error.strerror}): another simulator may have them, "
            "and only Linux has more loopback addresses than 127.0.0.1"
        ) from error
    return Block(number, lock)


def claim_any(name: str) -> Block:
    """Return a free block; which one is tried first depends on the name, so that a cluster made again gets the same."""
    first = zlib.crc32(name.encode()) % len(_BLOCKS)
    failure = NoAddresses("no addresses")
    for step in range(len(_BLOCKS)):
        try:
            return claim(_BLOCKS[(first + step) % len(_BLOCKS)])
        except NoAddresses as error:
            failure = error
    raise failure
