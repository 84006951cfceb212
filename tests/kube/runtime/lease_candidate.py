"""A process that runs for a lease and prints, every few milliseconds, the time and whether it believes to lead.

`lease_candidate KUBECONFIG IDENTITY`. CLOCK_MONOTONIC is the same for all processes of a machine, so lines compare.
"""

from __future__ import annotations

import asyncio
import sys
import time

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.runtime.leader import LeaderElector


async def main(kubeconfig: str, identity: str) -> None:
    client = Client(HttpTransport(load_config(kubeconfig)))
    elector = LeaderElector(
        client, "lock", "default", identity, lease_duration=1.0, renew_deadline=0.7, retry_period=0.1
    )

    async def report() -> None:
        while True:
            now = time.monotonic()  # before the look: who leads after a pause between the two has led at its beginning
            print(f"{now:.6f} {int(elector.leading)}", flush=True)
            await asyncio.sleep(0.005)

    reporting = asyncio.create_task(report())
    try:
        while True:
            await elector.acquire()
            await elector.hold()
    finally:
        reporting.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
