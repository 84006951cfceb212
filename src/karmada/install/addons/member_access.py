"""A kubeconfig that works in a pod: one context, with everything in it that files would hold."""

from __future__ import annotations

import base64
from pathlib import Path

from karmada.install.options import InstallError
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import dump_yaml

_FILES = ("certificate-authority", "client-certificate", "client-key")


def self_contained(path: Path, context: str = "") -> bytes:
    """Return the kubeconfig of a context, by default the current one; InstallError for what works only here."""
    try:
        loaded = Kubeconfig.load(path)
        loaded.resolve(context)
    except KubeconfigError as error:
        raise InstallError(f"--member-kubeconfig: {error}") from error
    name = context or loaded.current_context
    chosen = loaded.contexts[name]
    cluster, user = loaded.clusters[chosen["cluster"]], loaded.users.get(chosen.get("user", ""), {})
    if user.get("exec"):
        raise InstallError(
            f"--member-kubeconfig: {path} gets its credentials from the program {user['exec'].get('command')}, which a "
            "pod does not have: give a kubeconfig with a certificate or a token"
        )
    return dump_yaml(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": chosen["cluster"], "cluster": _embedded(cluster)}],
            "users": [{"name": chosen.get("user", ""), "user": _embedded(user)}],
            "contexts": [{"name": name, "context": chosen}],
            "current-context": name,
        }
    )


def _embedded(values: Obj) -> Obj:
    found = dict(values)
    for key in _FILES:
        if found.get(key) and not found.get(f"{key}-data"):
            found[f"{key}-data"] = base64.b64encode(_read(found[key])).decode()
        found.pop(key, None)
    if found.get("tokenFile"):
        found["token"] = _read(found.pop("tokenFile")).decode().strip()
    return found


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InstallError(f"--member-kubeconfig: {path}: {error.strerror}") from error
