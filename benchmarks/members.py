"""Member clusters for measurements: bare API servers in one process, in memory (`python -m benchmarks members`).

They store what they are sent and make nothing of it, as cheap as a member can be: the control plane is what is
measured. FOLDER/NAME/admin.kubeconfig leads to each.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path


def member_name(number: int) -> str:
    return f"member{number}"


def kubeconfig(folder: Path, number: int) -> Path:
    return folder / member_name(number) / "admin.kubeconfig"


async def serve(folder: Path, count: int) -> None:
    """Until interrupted; says "ready" when all of them serve."""
    from karmada.kube.runtime.tuning import tune_garbage_collection
    from karmada.kube.server.app import ApiServer
    from karmada.kube.server.config import ServerConfig

    tune_garbage_collection()
    stopping = asyncio.Event()
    for sent in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sent, stopping.set)
    servers = []
    for number in range(count):
        config = ServerConfig(
            data_dir=folder / member_name(number),
            storage="memory://",
            port=0,
            context=member_name(number),
            disabled_admission=frozenset({"ServiceAccount"}),
        )
        server = ApiServer(config)
        await server.start()
        servers.append(server)
    print(f"ready: {count} members in {folder}", flush=True)
    await stopping.wait()
    for server in servers:
        await server.stop()


def main() -> None:
    import uvloop

    folder, count = sys.argv[1:]
    uvloop.run(serve(Path(folder), int(count)))


if __name__ == "__main__":
    main()
