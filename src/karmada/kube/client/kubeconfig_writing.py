"""A RestConfig as a kubeconfig: for a program that is to reach the same server as the same user."""

from __future__ import annotations

import base64
from typing import Any, Final

import orjson

from karmada.kube.client.config import ExecConfig, Impersonation, Material, RestConfig
from karmada.kube.objects.types import Obj

_NAME: Final = "it"


def kubeconfig_of(config: RestConfig) -> bytes:
    """Return a kubeconfig whose only context resolves to this server and its credentials, secrets included.

    What is in files stays there; credentials that are followed are those of now.
    """
    credentials = config.reloaded.current() if config.reloaded is not None else config
    return orjson.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": _cluster(config, credentials.exec)}],
            "users": [{"name": _NAME, "user": {**_user(credentials), **_impersonation(config.impersonate)}}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": config.namespace}}],
            "current-context": _NAME,
        }
    )


def _cluster(config: RestConfig, plugin: ExecConfig | None) -> Obj:
    settings = None if plugin is None else plugin.config
    return _given(
        {
            "server": config.server,
            **_material("certificate-authority", config.ca),
            "insecure-skip-tls-verify": config.insecure,
            "tls-server-name": config.tls_server_name,
            "proxy-url": config.proxy_url,
            "disable-compression": config.disable_compression,
            "extensions": settings and [{"name": "client.authentication.k8s.io/exec", "extension": settings}],
        }
    )


def _user(credentials: RestConfig) -> Obj:
    return _given(
        {
            **_material("client-certificate", credentials.certificate),
            **_material("client-key", credentials.key),
            "token": credentials.token,
            "tokenFile": credentials.token_file,
            "username": credentials.username,
            "password": credentials.password,
            "exec": credentials.exec and _exec(credentials.exec),
        }
    )


def _impersonation(acting: Impersonation) -> Obj:
    return _given(
        {
            "as": acting.user,
            "as-uid": acting.uid,
            "as-groups": list(acting.groups),
            "as-user-extra": {key: list(values) for key, values in acting.extra.items()},
        }
    )


def _exec(plugin: ExecConfig) -> Obj:
    return _given(
        {
            "apiVersion": plugin.api_version,
            "command": plugin.command,
            "args": list(plugin.args),
            "env": [{"name": name, "value": value} for name, value in plugin.env.items()],
            "installHint": plugin.install_hint,
            "provideClusterInfo": plugin.provide_cluster_info,
            "interactiveMode": plugin.interactive_mode,
        }
    )


def _material(key: str, material: Material) -> Obj:
    if material.data:
        return {f"{key}-data": base64.b64encode(material.data).decode()}
    return {key: material.path}


def _given(fields: dict[str, Any]) -> Obj:
    """Without those that say nothing."""
    return {key: value for key, value in fields.items() if value}
