"""The sample controller: keeps a Secret for every ConfigMap that requests one.

It is also a process of its own: `sample_controller.py KUBECONFIG`.
"""

from __future__ import annotations

import asyncio
import sys

from karmada.kube.client.client import Client
from karmada.kube.objects.gvk import GVR
from karmada.kube.runtime.controller import Reconciler, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.manager import Manager
from karmada.kube.runtime.writes import patch_if_changed

CONFIG_MAPS = GVR("", "v1", "configmaps")
SECRETS = GVR("", "v1", "secrets")


class Copier(Reconciler):
    name = "copier"
    watches = (Watch(CONFIG_MAPS), Watch(SECRETS))
    workers = 2

    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.config_maps = manager.informers.of(CONFIG_MAPS)
        self.secrets = manager.informers.of(SECRETS)

    async def reconcile(self, key: Key) -> None:
        source, copy = self.config_maps.get(key), self.secrets.get(key)
        if source is None or "copy" not in (source.get("data") or {}):
            if copy is not None:
                await self.client.delete(SECRETS, key.name, key.namespace)
            return
        data = source["data"]["copy"]
        if copy is None:
            metadata = {"name": key.name, "namespace": key.namespace}
            await self.client.create(SECRETS, {"metadata": metadata, "type": "Opaque", "data": {"copy": data}})
        else:
            await patch_if_changed(self.client, SECRETS, copy, {**copy, "data": {"copy": data}})


async def main(kubeconfig: str) -> None:
    from karmada.kube.client.http_transport import HttpTransport
    from karmada.kube.client.kubeconfig import load_config

    client = Client(HttpTransport(load_config(kubeconfig)), field_manager="copier")
    manager = Manager(client)
    manager.add(Copier(manager))
    try:
        await manager.run()
    finally:
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
