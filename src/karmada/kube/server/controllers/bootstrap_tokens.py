"""Bootstrap tokens: sign kube-public/cluster-info with each that may, and delete the expired ones."""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.objects.bootstrap_tokens import INFO_NAME, INFO_NAMESPACE, SECRET_TYPE
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvrs import CONFIG_MAPS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists
from karmada.kube.server.auth.bootstrap_tokens import seconds_left, sign_cluster_info

CLUSTER_INFO = Key(INFO_NAMESPACE, INFO_NAME)
_TOKENS = f"type={SECRET_TYPE}"
_INFO = f"metadata.name={CLUSTER_INFO.name}"


def _info_key(_obj: Obj) -> tuple[Key, ...]:
    return (CLUSTER_INFO,)


class BootstrapSigner(Reconciler):
    name = "bootstrapsigner"
    watches = (
        Watch(SECRETS, namespace="kube-system", field_selector=_TOKENS, map_to=_info_key),
        Watch(CONFIG_MAPS, namespace=INFO_NAMESPACE, field_selector=_INFO),
    )

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._secrets = informers.of(SECRETS, "kube-system", field_selector=_TOKENS)
        self._config_maps = informers.of(CONFIG_MAPS, INFO_NAMESPACE, field_selector=_INFO)
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        info = self._config_maps.get(key)
        if info is None:
            return Done
        wanted = sign_cluster_info(info, self._secrets.list(), self._clock.now())
        if wanted is not None:
            await self._client.update(CONFIG_MAPS, copy_json(wanted))
        return Done


class TokenCleaner(Reconciler):
    name = "tokencleaner"
    watches = (Watch(SECRETS, namespace="kube-system", field_selector=_TOKENS),)

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._secrets = informers.of(SECRETS, "kube-system", field_selector=_TOKENS)
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        secret = self._secrets.get(key)
        left = seconds_left(secret, self._clock.now()) if secret is not None else None
        if secret is None or left is None:
            return Done
        if left > 0:
            return requeue(left)
        await delete_if_exists(self._client, SECRETS, key.name, key.namespace, uid=secret["metadata"]["uid"])
        return Done
