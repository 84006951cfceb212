"""Several server processes on one etcd; they share their keys through it."""

from __future__ import annotations

from pathlib import Path

from tests.support.etcd_cluster import EtcdCluster
from tests.support.programs import ServerProcess


def start_servers(etcd: EtcdCluster, directory: Path, count: int = 2) -> list[ServerProcess]:
    servers = [ServerProcess(directory / f"server{number}", ["--storage", etcd.url]) for number in range(count)]
    for server in servers:
        server.start()
    return servers
