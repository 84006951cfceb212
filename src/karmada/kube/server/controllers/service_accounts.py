"""What every namespace has (a default ServiceAccount, the CA bundle), and token Secrets where they are still used."""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import AlreadyExists, ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import ACCOUNTS, CONFIG_MAPS, NAMESPACES, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import delete_if_exists, get_if_exists
from karmada.kube.server.auth.tokens import SECRET_TYPE, TokenIssuer, account_of, orphaned, populate

DEFAULT_ACCOUNT, ROOT_CA = "default", "kube-root-ca.crt"
_ROOT_CA_NOTE = "Holds the certificates that verify connections to this API server; kept up to date by it."


def _namespace_key(obj: Obj) -> tuple[Key, ...]:
    return (Key("", obj["metadata"]["namespace"]),)


class NamespaceDefaults(Reconciler):
    """Makes and keeps the default ServiceAccount and the kube-root-ca.crt ConfigMap of each namespace."""

    name = "namespace-defaults"
    workers = 4
    watches = (
        Watch(NAMESPACES),
        Watch(ACCOUNTS, field_selector=f"metadata.name={DEFAULT_ACCOUNT}", map_to=_namespace_key),
        Watch(CONFIG_MAPS, field_selector=f"metadata.name={ROOT_CA}", map_to=_namespace_key),
    )

    def __init__(self, client: Client, informers: Informers, ca_pem: bytes) -> None:
        self._client = client
        self._namespaces = informers.of(NAMESPACES)
        self._accounts = informers.of(ACCOUNTS, field_selector=f"metadata.name={DEFAULT_ACCOUNT}")
        self._config_maps = informers.of(CONFIG_MAPS, field_selector=f"metadata.name={ROOT_CA}")
        self._bundle = {"ca.crt": ca_pem.decode()}

    async def reconcile(self, key: Key) -> Result:
        namespace = self._namespaces.get(key)
        if namespace is None or "deletionTimestamp" in namespace["metadata"]:
            return Done
        if self._accounts.get(Key(key.name, DEFAULT_ACCOUNT)) is None:
            meta: Obj = {"name": DEFAULT_ACCOUNT, "namespace": key.name}
            await self._create(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        known = self._config_maps.get(Key(key.name, ROOT_CA))
        if known is None:
            await self._create(CONFIG_MAPS, self._config_map(key.name))
        elif known.get("data") != self._bundle:
            await self._client.patch(CONFIG_MAPS, ROOT_CA, key.name, {"data": self._bundle})
        return Done

    def _config_map(self, namespace: str) -> Obj:
        annotations = {"kubernetes.io/description": _ROOT_CA_NOTE}
        meta = {"name": ROOT_CA, "namespace": namespace, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": self._bundle}

    async def _create(self, gvr: GVR, obj: Obj) -> None:
        try:
            await self._client.create(gvr, obj)
        except AlreadyExists:
            return
        except ApiError as error:
            if not error.has_cause("NamespaceTerminating") and not isinstance(error, NotFound):
                raise


def _account_key(secret: Obj) -> tuple[Key, ...]:
    return (Key(secret["metadata"]["namespace"], account_of(secret)),)


class TokenSecrets(Reconciler):
    """Fills Secrets of type service-account-token, and deletes those whose account is gone. Keys name accounts."""

    name = "serviceaccount-token"
    _type = f"type={SECRET_TYPE}"
    watches = (Watch(SECRETS, field_selector=_type, map_to=_account_key), Watch(ACCOUNTS))

    def __init__(self, client: Client, informers: Informers, issuer: TokenIssuer, ca_pem: bytes) -> None:
        self._client = client
        self._accounts = informers.of(ACCOUNTS)
        self._secrets = informers.of(SECRETS, field_selector=self._type)
        self._secrets.add_index("account", lambda secret: ["/".join(_account_key(secret)[0])])
        self._issuer = issuer
        self._ca_pem = ca_pem

    async def reconcile(self, key: Key) -> Result:
        secrets = self._secrets.by_index("account", "/".join(key))
        account = self._accounts.get(key)
        if secrets and account is None:
            account = await self._live(key)
        for secret in secrets:
            if orphaned(secret, account):
                await self._delete(secret)
                continue
            assert account is not None
            filled = populate(secret, account, self._issuer, self._ca_pem)
            if filled is not None:
                await self._client.update(SECRETS, copy_json(filled))
        return Done

    async def _live(self, key: Key) -> Obj | None:
        return await get_if_exists(self._client, ACCOUNTS, key.name, key.namespace)

    async def _delete(self, secret: Obj) -> None:
        meta = secret["metadata"]
        await delete_if_exists(self._client, SECRETS, meta["name"], meta["namespace"], uid=meta["uid"])
