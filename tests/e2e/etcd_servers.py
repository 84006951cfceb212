"""Several server processes on one etcd, with the same certificates."""

from __future__ import annotations

import shutil
from pathlib import Path

from etcd_cluster import EtcdCluster
from programs import ServerProcess


def start_servers(etcd: EtcdCluster, directory: Path, count: int = 2) -> list[ServerProcess]:
    servers = [ServerProcess(directory / f"server{number}", ["--storage", etcd.url]) for number in range(count)]
    servers[0].start()
    for server in servers[1:]:
        shutil.copytree(servers[0].data_dir / "pki", server.data_dir / "pki")
        server.start()
    return servers
