"""ServiceAccount: every Pod runs as an account that exists, with its pull secrets and a token to call the API with.

The account `default` is created by a controller a moment after its namespace, so a Pod that follows at once waits for
it.
"""

from __future__ import annotations

import asyncio
import random

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects import names
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, is_pod_create, refuse

ACCOUNTS = GroupResource("", "serviceaccounts")
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX = "kube-api-access-"
_MIRROR = "kubernetes.io/config.mirror"
TOKEN_SECONDS = 3607
DEFAULT = "default"
DEFAULT_LOOKUPS = 10
"""How often the default account is looked up before a Pod is refused."""
_AT_ONCE = 5_000
"""Containers between two turns of the loop."""
_LOOKUP_SECONDS = 0.1
"""The least pause between two lookups; at most twice that."""


class ServiceAccount(BuiltinPlugin):
    name = "ServiceAccount"

    def __init__(self, reader: Reader, clock: Clock = SYSTEM) -> None:
        super().__init__(reader)
        self._clock = clock

    def handles(self, attributes: Attributes) -> bool:
        return is_pod_create(attributes)

    async def admit(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or _MIRROR in (pod["metadata"].get("annotations") or {}):
            return
        spec = pod["spec"]
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT
        if spec["serviceAccountName"] == DEFAULT:
            await self._await_default(attributes.namespace)
        account = self._account(attributes, spec["serviceAccountName"])
        if _wants_token(spec, account):
            await mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]

    async def validate(self, attributes: Attributes) -> None:
        pod = attributes.obj or {}
        if _MIRROR in (pod["metadata"].get("annotations") or {}):
            if pod["spec"].get("serviceAccountName"):
                raise refuse(attributes, "a mirror pod may not reference service accounts")
            return
        self._account(attributes, pod["spec"].get("serviceAccountName") or "")

    async def _await_default(self, namespace: str) -> None:
        """Wait until the account exists, or for at most DEFAULT_LOOKUPS lookups."""
        for _ in range(DEFAULT_LOOKUPS - 1):
            if self.reader.get(ACCOUNTS, namespace, DEFAULT) is not None:
                return
            await self._clock.sleep(_LOOKUP_SECONDS * (1 + random.random()))

    def _account(self, attributes: Attributes, name: str) -> Obj:
        account = self.reader.get(ACCOUNTS, attributes.namespace, name)
        if account is None:
            where = f"{attributes.namespace}/{name}"
            raise refuse(attributes, f'error looking up service account {where}: serviceaccount "{name}" not found')
        return account


def _wants_token(spec: Obj, account: Obj) -> bool:
    """Return whether a token is mounted: the Pod decides, then its account; by default one is."""
    for holder in (spec, account):
        wish = holder.get("automountServiceAccountToken")
        if wish is not None:
            return bool(wish)
    return True


async def mount_token(spec: Obj) -> None:
    """In place: the token volume, mounted in every container that has nothing at that path yet.

    Gives way to the loop now and then: a body of the allowed size may hold a million containers.
    """
    known = next((v["name"] for v in spec.get("volumes") or () if v.get("name", "").startswith(VOLUME_PREFIX)), "")
    name = known or VOLUME_PREFIX + names.random_suffix()
    mounted = False
    for key in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(key) or (), start=1):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            mounts = container.get("volumeMounts") or []
            if mounts and any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
                continue
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
            mounted = True
    if mounted and not known:
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": _token_sources()}]


def _token_sources() -> Obj:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
    }
