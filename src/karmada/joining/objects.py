"""The objects that joining makes, on either side, and what they are called."""

from __future__ import annotations

from typing import Final

from karmada.api import well_known
from karmada.kube.objects import rbac
from karmada.kube.objects.types import Obj

IMPERSONATOR: Final = "karmada-impersonator"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_OURS: Final = {well_known.SYSTEM: well_known.TRUE}


def namespace(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _OURS}}


def service_account(where: str, name: str) -> Obj:
    metadata = {"namespace": where, "name": name, "labels": _OURS}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def token_secret(where: str, account: str) -> Obj:
    """Return the Secret with the name of its ServiceAccount, whose token the server puts in."""
    metadata = {"namespace": where, "name": account, "annotations": {ACCOUNT_NAME: account}}
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": metadata}


def everything_role(name: str) -> Obj:
    """May do anything there is."""
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    return rbac.role(name, [everything, {"nonResourceURLs": ["*"], "verbs": ["get"]}], labels=_OURS)


def role_binding(name: str, where: str, account: str) -> Obj:
    return rbac.binding(name, rbac.account(where, account), labels=_OURS)


def credentials(where: str, name: str, data: dict[str, str]) -> Obj:
    """Return a Secret of the control plane; `data` is in base64 already."""
    metadata = {"namespace": where, "name": name, "labels": _OURS}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}
