import asyncio

from karmada.sdk import GVR, Client, Done, HttpTransport, Key, Manager, Reconciler, Result, Watch, load_config

CONFIG_MAPS = GVR("", "v1", "configmaps")


class Greeter(Reconciler):
    """Says hello in every ConfigMap that has a name to greet."""

    name = "greeter"
    watches = (Watch(CONFIG_MAPS, label_selector="greet"),)

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._config_maps = manager.informers.of(CONFIG_MAPS, label_selector="greet")

    async def reconcile(self, key: Key) -> Result:
        config_map = self._config_maps.get(key)
        if config_map is None:
            return Done
        hello = f"hello {config_map['metadata']['labels']['greet']}"
        if (config_map.get("data") or {}).get("hello") != hello:
            await self._client.patch(CONFIG_MAPS, key.name, key.namespace, {"data": {"hello": hello}})
        return Done


async def main() -> None:
    manager = Manager(Client(HttpTransport(load_config())))
    manager.add(Greeter(manager))
    await manager.run()


if __name__ == "__main__":
    asyncio.run(main())
