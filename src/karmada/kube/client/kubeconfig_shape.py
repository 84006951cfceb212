"""The shape of a kubeconfig: what is text, what is a list, and what has fields of its own.

A table of fields is held against a document before anybody reads it, so that the code that reads it need not check
again. What is null counts as not there; fields that are not in the table are ignored. Texts never show a
value: it may be a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias


class KubeconfigError(ValueError):
    """A kubeconfig that cannot be read or does not have what was requested."""


Shape: TypeAlias = "type | Mapping[str, Shape] | tuple[Shape]"
"""A plain type, the fields of an object, or (of what,) for a list; under EVERY_KEY what any field holds."""
EVERY_KEY: Final = "*"


def _texts(*names: str) -> dict[str, Shape]:
    return dict.fromkeys(names, str)


_EXEC: Final[Shape] = {
    **_texts("apiVersion", "command", "installHint", "interactiveMode"),
    "args": (str,),
    "env": (_texts("name", "value"),),
}
_CLUSTER: Final[Shape] = {
    **_texts("server", "certificate-authority", "certificate-authority-data", "tls-server-name", "proxy-url"),
    "insecure-skip-tls-verify": bool,
    "disable-compression": bool,
    "extensions": ({"name": str},),
}
_USER: Final[Shape] = {
    **_texts("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
    **_texts("token", "tokenFile", "username", "password", "as", "as-uid"),
    "as-groups": (str,),
    "as-user-extra": {EVERY_KEY: (str,)},
    "auth-provider": {"name": str},
    "exec": _EXEC,
}
_DOCUMENT: Final[Shape] = {
    "clusters": ({"name": str, "cluster": _CLUSTER},),
    "users": ({"name": str, "user": _USER},),
    "contexts": ({"name": str, "context": _texts("cluster", "user", "namespace")},),
    "current-context": str,
}
_WORDS: Final = {str: "text", bool: "true or false"}


def check_shape(document: Any, where: str) -> None:
    """KubeconfigError for the first thing that is not what it has to be."""
    _check(document, _DOCUMENT, where, "")


def _check(value: Any, shape: Shape, where: str, path: str) -> None:
    if value is None:
        return
    if isinstance(shape, type):
        if not isinstance(value, shape):
            raise KubeconfigError(f"{where}: {path} must be {_WORDS[shape]}")
    elif isinstance(shape, tuple):
        if not isinstance(value, list):
            raise KubeconfigError(f"{where}: {path} must be a list")
        for index, item in enumerate(value):
            if item is None:
                raise KubeconfigError(f"{where}: {path}[{index}] is empty")
            _check(item, shape[0], where, f"{path}[{index}]")
    else:
        if not isinstance(value, dict):
            raise KubeconfigError(f"{where}: {path} must have fields")
        for name, inner in _fields(value, shape):
            _check(value.get(name), inner, where, f"{path}.{name}" if path else name)


def _fields(value: Mapping[str, Any], shape: Mapping[str, Shape]) -> list[tuple[str, Shape]]:
    if EVERY_KEY in shape:
        return [(name, shape[EVERY_KEY]) for name in value]
    return list(shape.items())
