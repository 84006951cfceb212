"""The file of `init --config`: a KarmadaInitConfig, read as the flags that it stands for.

Keys are matched without regard to upper and lower case, and unknown ones are ignored, as in Karmada. What is set in the
file takes precedence over flags; extra arguments are added to those of the flags, and win where both name the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from karmada.install.flags import FLAGS, Given, value
from karmada.install.options import InstallError
from karmada.kube.objects.times import parse_duration
from karmada.kube.schema.yamlio import load_all

GROUP: Final = "config.karmada.io"
VERSION: Final = f"{GROUP}/v1alpha1"
KIND: Final = "KarmadaInitConfig"
Read: TypeAlias = Callable[[Any], Any]

_COMPONENTS: Final = {
    "karmadaAPIServer": "karmada-apiserver",
    "karmadaAggregatedAPIServer": "karmada-aggregated-apiserver",
    "kubeControllerManager": "karmada-kube-controller-manager",
    "karmadaControllerManager": "karmada-controller-manager",
    "karmadaScheduler": "karmada-scheduler",
    "karmadaWebhook": "karmada-webhook",
}


def _list(found: Any) -> tuple[str, ...]:
    return tuple(map(str, found))


def _commas(found: Any) -> str:
    return ",".join(map(str, found))


def _labels(found: Any) -> str:
    return ",".join(f"{key}={text}" for key, text in found.items())


def _duration(found: Any) -> float:
    return parse_duration(str(found))


_FIELDS: Final[tuple[tuple[str, str, Read], ...]] = (
    ("certificates.caCertFile", "ca-cert-file", str),
    ("certificates.caKeyFile", "ca-key-file", str),
    ("certificates.externalDNS", "cert-external-dns", _commas),
    ("certificates.externalIP", "cert-external-ip", _commas),
    ("certificates.validityPeriod", "cert-validity-period", _duration),
    ("etcd.local.replicas", "etcd-replicas", int),
    ("etcd.local.dataPath", "etcd-data", str),
    ("etcd.local.nodeSelectorLabels", "etcd-node-selector-labels", _labels),
    ("etcd.local.pvcSize", "etcd-pvc-size", str),
    ("etcd.local.storageMode", "etcd-storage-mode", str),
    ("etcd.local.storageClassesName", "storage-classes-name", str),
    ("hostCluster.kubeconfig", "kubeconfig", str),
    ("hostCluster.context", "context", str),
    ("hostCluster.domain", "host-cluster-domain", str),
    ("images.imagePullPolicy", "image-pull-policy", str),
    ("images.imagePullSecrets", "image-pull-secrets", _list),
    ("images.kubeImageMirrorCountry", "kube-image-mirror-country", str),
    ("images.kubeImageRegistry", "kube-image-registry", str),
    ("images.kubeImageTag", "kube-image-tag", str),
    ("images.privateRegistry.registry", "private-image-registry", str),
    ("components.karmadaAPIServer.advertiseAddress", "karmada-apiserver-advertise-address", str),
    ("components.karmadaAPIServer.networking.namespace", "namespace", str),
    ("components.karmadaAPIServer.networking.port", "port", int),
    *((f"components.{key}.replicas", f"{name}-replicas", int) for key, name in _COMPONENTS.items()),
    ("karmadaCRDs", "crds", str),
    ("karmadaDataPath", "karmada-data", str),
    ("karmadaPKIPath", "karmada-pki", str),
    ("waitComponentReadyTimeout", "wait-component-ready-timeout", int),
)
_EXTERNAL: Final[tuple[tuple[str, str, Read], ...]] = (
    ("etcd.external.endpoints", "external-etcd-servers", _commas),
    ("etcd.external.caFile", "external-etcd-ca-cert-path", str),
    ("etcd.external.certFile", "external-etcd-client-cert-path", str),
    ("etcd.external.keyFile", "external-etcd-client-key-path", str),
    ("etcd.external.keyPrefix", "external-etcd-key-prefix", str),
)
"""Ignored where there is a local etcd."""


def with_config(given: Given, path: Path) -> dict[str, Any]:
    """Return the flags with what the file says; InstallError for a file that cannot be used."""
    try:
        spec = _spec(list(load_all(path.read_text())))
        return {**given, **_flags(spec), **_extra_args(spec, given)}
    except OSError as error:
        raise InstallError(f"--config: {path}: {error.strerror}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise InstallError(f"--config: {path}: {error}") from error


def _spec(documents: list[Any]) -> Mapping[str, Any]:
    documents = [document for document in documents if document is not None]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ValueError(f"expected one YAML document, a {KIND}")
    document = _lowered(documents[0])
    version, kind = str(document.get("apiversion") or ""), str(document.get("kind") or "")
    if not version or not kind:
        raise ValueError(f"apiVersion and kind are needed: {VERSION}, {KIND}")
    if version != VERSION:
        raise ValueError(f'apiVersion "{version}" is not known (expected {VERSION})')
    if kind != KIND:
        raise ValueError(f'kind "{kind}" is not known (expected {KIND})')
    spec = document.get("spec") or {}
    if not isinstance(spec, dict):
        raise ValueError("spec: expected a mapping")
    return spec


def _lowered(found: Any) -> Any:
    """With the keys of fields in lower case; those of labels stay as they are."""
    if not isinstance(found, dict):
        return [_lowered(item) for item in found] if isinstance(found, list) else found
    return {
        str(key).lower(): text if str(key).lower() == "nodeselectorlabels" else _lowered(text)
        for key, text in found.items()
    }


def _at(spec: Mapping[str, Any], path: str) -> Any:
    found: Any = spec
    for key in path.lower().split("."):
        if found is None:
            return None
        if not isinstance(found, dict):
            raise ValueError(f"spec.{path}: expected a mapping")
        found = found.get(key)
    return found


def _flags(spec: Mapping[str, Any]) -> dict[str, Any]:
    local = _at(spec, "etcd.local") is not None
    fields = (*_FIELDS, *(() if local else _EXTERNAL))
    return dict(_values(spec, fields)) | _images(spec)


def _values(spec: Mapping[str, Any], fields: Iterable[tuple[str, str, Read]]) -> Iterable[tuple[str, Any]]:
    for path, flag, read in fields:
        found = _at(spec, path)
        if found in (None, "", 0, [], {}):
            continue
        try:
            yield flag, read(found)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"spec.{path}: {error}") from error


def _images(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the images; each needs its repository and its tag."""
    places = {"etcd.local": "etcd", **{f"components.{key}": name for key, name in _COMPONENTS.items()}}
    found = {}
    for path, name in places.items():
        repository, tag = _at(spec, f"{path}.repository"), _at(spec, f"{path}.tag")
        if repository and tag:
            found[f"{name}-image"] = f"{repository}:{tag}"
    return found


def _extra_args(spec: Mapping[str, Any], given: Given) -> dict[str, tuple[str, ...]]:
    places = {"etcd.local": "etcd", **{f"components.{key}": name for key, name in _COMPONENTS.items()}}
    found = {}
    for path, name in places.items():
        entries = _at(spec, f"{path}.extraArgs")
        if entries:
            flag = f"{name}-extra-args"
            assert flag in FLAGS
            found[flag] = (*value(given, flag), *_entries(entries, f"spec.{path}.extraArgs"))
    return found


def _entries(entries: Any, path: str) -> Iterable[str]:
    for index, entry in enumerate(entries):
        name = entry.get("name")
        if not name:
            raise ValueError(f"{path}[{index}].name: Required value")
        yield f"--{name}={entry.get('value') or ''}"
