"""Where servers listen."""

from __future__ import annotations

import os

from karmada.kube.client.cluster_names import POD_ADDRESS

_OWN = ("", "0.0.0.0", "::", "localhost", "127.0.0.1", "::1")


def listen_host(host: str) -> str:
    """Return the address to listen on.

    The wildcard and localhost mean the pod's address in a process of a simulated cluster, whose pods share one.
    """
    address = os.environ.get(POD_ADDRESS)
    return address if address and host in _OWN else host
