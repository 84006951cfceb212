"""Kubeconfig files: found, merged and resolved as kubectl does it.

$KUBECONFIG may name several files; of entries with the same name, and of every other value, the first file that has it
wins. Paths inside a file are relative to that file. `Kubeconfig.resolve` turns a context into a RestConfig.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karmada.kube.client.config import DEFAULT_TIMEOUT, ExecConfig, Impersonation, Material, RestConfig
from karmada.kube.client.kubeconfig_shape import KubeconfigError, check_shape
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_yaml

_CLUSTER_PATHS = ("certificate-authority",)
_USER_PATHS = ("client-certificate", "client-key", "tokenFile")
__all__ = ["Kubeconfig", "KubeconfigError", "default_paths", "load_config"]
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


def default_paths() -> list[Path]:
    """Return where kubectl looks: the files of $KUBECONFIG, or ~/.kube/config."""
    listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return [Path(part) for part in listed] or [Path.home() / ".kube" / "config"]


@dataclass(slots=True)
class Kubeconfig:
    clusters: dict[str, Obj] = field(default_factory=dict)
    users: dict[str, Obj] = field(default_factory=dict)
    contexts: dict[str, Obj] = field(default_factory=dict)
    current_context: str = ""

    @classmethod
    def load(cls, path: str | Path | None = None) -> Kubeconfig:
        """Return one file, which must exist, or (without `path`) the default ones that exist, merged."""
        if path is not None:
            return cls.merge([_read(Path(path))])
        return cls.merge([_read(found) for found in default_paths() if found.exists()])

    @classmethod
    def parse(cls, text: str | bytes, *, directory: str | Path = ".") -> Kubeconfig:
        return cls.merge([_localise(_document(text, "kubeconfig"), Path(directory))])

    @classmethod
    def merge(cls, documents: Sequence[Obj]) -> Kubeconfig:
        config = cls()
        for document in documents:
            for section, inner, found in (
                ("clusters", "cluster", config.clusters),
                ("users", "user", config.users),
                ("contexts", "context", config.contexts),
            ):
                for entry in document.get(section) or ():
                    found.setdefault(str(entry.get("name", "")), entry.get(inner) or {})
            config.current_context = config.current_context or str(document.get("current-context") or "")
        return config

    def resolve(
        self, context: str = "", *, cluster: str = "", user: str = "", timeout: float = DEFAULT_TIMEOUT
    ) -> RestConfig:
        """Return the way to the server of a context (the current one by default)."""
        name = context or self.current_context
        if name and name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or "none"
            raise KubeconfigError(f'context "{name}" does not exist (known: {known})')
        chosen = self.contexts.get(name, {})
        cluster_name = cluster or chosen.get("cluster") or ""
        user_name = user or chosen.get("user") or ""
        if not cluster_name:
            raise KubeconfigError("no cluster chosen: the kubeconfig has no current-context")
        if cluster_name not in self.clusters:
            raise KubeconfigError(f'cluster "{cluster_name}" does not exist')
        if user_name and user_name not in self.users:
            raise KubeconfigError(f'user "{user_name}" does not exist')
        return _rest_config(
            self.clusters[cluster_name],
            self.users.get(user_name, {}),
            namespace=chosen.get("namespace") or "default",
            timeout=timeout,
        )


def load_config(path: str | Path | None = None, context: str = "") -> RestConfig:
    """Return the default context of the default files, or of the given ones."""
    return Kubeconfig.load(path).resolve(context)


def _read(path: Path) -> Obj:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{path}: {error.strerror}") from error
    return _localise(_document(text, str(path)), path.parent)


def _document(text: str | bytes, where: str) -> Obj:
    try:
        document = load_yaml(text)
    except ValueError as error:
        raise KubeconfigError(f"{where}: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"{where}: not a kubeconfig")
    check_shape(document, where)
    return document


def _localise(document: Obj, directory: Path) -> Obj:
    """Make the relative paths of a freshly read document absolute, in place."""
    for section, inner, keys in (("clusters", "cluster", _CLUSTER_PATHS), ("users", "user", _USER_PATHS)):
        for entry in document.get(section) or ():
            values = entry.get(inner) or {}
            for key in keys:
                if values.get(key):
                    values[key] = str(directory / values[key])
            plugin = values.get("exec") or {}
            command = plugin.get("command") or ""
            if os.sep in command:
                plugin["command"] = str(directory / command)
    return document


def _material(values: Obj, key: str) -> Material:
    encoded = values.get(f"{key}-data")
    if not encoded:
        return Material(path=values.get(key) or "")
    try:
        return Material(data=base64.b64decode(encoded, validate=False))
    except (binascii.Error, ValueError) as error:
        raise KubeconfigError(f"{key}-data is not valid base64: {error}") from None


def _rest_config(cluster: Obj, user: Obj, *, namespace: str, timeout: float) -> RestConfig:
    if "auth-provider" in user:
        name = (user["auth-provider"] or {}).get("name", "")
        raise KubeconfigError(f'the auth provider "{name}" is no longer supported; use an exec plug-in instead')
    return RestConfig(
        server=_server(cluster),
        ca=_material(cluster, "certificate-authority"),
        certificate=_material(user, "client-certificate"),
        key=_material(user, "client-key"),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=cluster.get("tls-server-name") or "",
        proxy_url=cluster.get("proxy-url") or "",
        disable_compression=bool(cluster.get("disable-compression")),
        token=user.get("token") or "",
        token_file=user.get("tokenFile") or "",
        username=user.get("username") or "",
        password=user.get("password") or "",
        exec=_exec(user.get("exec"), cluster),
        impersonate=Impersonation(
            user=user.get("as") or "",
            uid=user.get("as-uid") or "",
            groups=tuple(user.get("as-groups") or ()),
            extra={key: tuple(values or ()) for key, values in (user.get("as-user-extra") or {}).items()},
        ),
        namespace=namespace,
        timeout=timeout,
    )


def _server(cluster: Obj) -> str:
    server = str(cluster.get("server") or "")
    if not server:
        raise KubeconfigError("the cluster has no server")
    return server if "://" in server else f"http://{server}"


def _exec(plugin: Any, cluster: Obj) -> ExecConfig | None:
    if not plugin:
        return None
    version = plugin.get("apiVersion") or ""
    if version not in _EXEC_VERSIONS:
        known = ", ".join(_EXEC_VERSIONS)
        raise KubeconfigError(f'exec plug-in: apiVersion "{version}" is not supported (known: {known})')
    if not plugin.get("command"):
        raise KubeconfigError("exec plug-in: no command")
    extensions = {e.get("name"): e.get("extension") for e in cluster.get("extensions") or ()}
    return ExecConfig(
        command=plugin["command"],
        api_version=version,
        args=tuple(plugin.get("args") or ()),
        env={entry.get("name") or "": entry.get("value") or "" for entry in plugin.get("env") or ()},
        install_hint=plugin.get("installHint") or "",
        provide_cluster_info=bool(plugin.get("provideClusterInfo")),
        interactive_mode=plugin.get("interactiveMode") or "IfAvailable",
        config=extensions.get("client.authentication.k8s.io/exec"),
    )
