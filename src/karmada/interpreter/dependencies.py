"""What a Pod refers to, and which references are fit to be followed.

References are gathered by kind, without repetition, in the order in which the Pod names them. A volume has one source;
should it have several, only the first in the table below counts for Secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from karmada.interpreter.operations import InterpreterError
from karmada.kube.kinds.checks import label_selector
from karmada.kube.objects.errors import FieldErrors, invalid
from karmada.kube.objects.types import Obj

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")

_SECRET_OF_VOLUME: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("azureFile", ("secretName",)),
    ("cephfs", ("secretRef", "name")),
    ("cinder", ("secretRef", "name")),
    ("flexVolume", ("secretRef", "name")),
    ("projected", ()),
    ("rbd", ("secretRef", "name")),
    ("secret", ("secretName",)),
    ("scaleIO", ("secretRef", "name")),
    ("iscsi", ("secretRef", "name")),
    ("storageos", ("secretRef", "name")),
    ("csi", ("nodePublishSecretRef", "name")),
)
"""Where each source of volumes names its Secret; a projected one has several sources, each with its own."""


def pod_dependencies(pod: Obj, namespace: str) -> list[Obj]:
    """Return the references of a Pod with this spec: ConfigMaps, Secrets, ServiceAccount, claims."""
    account = pod.get("serviceAccountName")
    volumes = pod.get("volumes") or ()
    found = (
        ("ConfigMap", _config_maps(pod, volumes)),
        ("Secret", _secrets(pod, volumes)),
        ("ServiceAccount", (account,) if account != "default" else ()),
        ("PersistentVolumeClaim", (_at(volume, ("persistentVolumeClaim", "claimName")) for volume in volumes)),
    )
    return [reference("v1", kind, namespace, name) for kind, names in found for name in dict.fromkeys(names) if name]


def reference(api_version: str, kind: str, namespace: str, name: str) -> Obj:
    result = {"apiVersion": api_version, "kind": kind}
    if namespace:
        result["namespace"] = namespace
    result["name"] = name
    return result


def _config_maps(pod: Obj, volumes: Sequence[Obj]) -> Iterator[Any]:
    yield from _named_by_containers(pod, "configMapRef", "configMapKeyRef")
    for volume in volumes:
        yield _at(volume, ("configMap", "name"))
        yield from _projected(volume, "configMap")


def _secrets(pod: Obj, volumes: Sequence[Obj]) -> Iterator[Any]:
    for pull in pod.get("imagePullSecrets") or ():
        yield pull.get("name")
    yield from _named_by_containers(pod, "secretRef", "secretKeyRef")
    for volume in volumes:
        for source, path in _SECRET_OF_VOLUME:
            if volume.get(source) is not None:
                yield from (_at(volume[source], path),) if path else _projected(volume, "secret")
                break


def _named_by_containers(pod: Obj, whole: str, key: str) -> Iterator[Any]:
    """Names in the environments of all containers: of objects taken as a whole, and of those a key is taken from."""
    for field in _CONTAINERS:
        for container in pod.get(field) or ():
            for source in container.get("envFrom") or ():
                yield _at(source, (whole, "name"))
            for variable in container.get("env") or ():
                yield _at(variable, ("valueFrom", key, "name"))


def _projected(volume: Obj, kind: str) -> Iterator[Any]:
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield _at(source, (kind, "name"))


def _at(value: Any, path: Iterable[str]) -> Any:
    for field in path:
        if not value:
            return None
        value = value.get(field)
    return value


def united(found: Iterable[Obj]) -> list[Obj]:
    """Return references of several sources: sorted, each once. Two with label selectors are never the same."""
    merged: dict[Any, Obj] = {}
    for dependency in found:
        key = object() if "labelSelector" in dependency else tuple(sorted(dependency.items()))
        merged.setdefault(key, dependency)
    fields = ("apiVersion", "kind", "namespace", "name")
    return sorted(merged.values(), key=lambda dependency: [dependency.get(field) or "" for field in fields])


def verify_dependencies(dependencies: Sequence[Obj]) -> None:
    """Raise InterpreterError that lists every invalid reference."""
    errors = FieldErrors()
    for index, dependency in enumerate(dependencies):
        path = f"dependencies[{index}]"
        missing = [field for field in ("apiVersion", "kind") if not dependency.get(field)]
        errors.extend(invalid(f"{path}.{field}", "", f"missing required {field}") for field in missing)
        selector = dependency.get("labelSelector")
        if not dependency.get("name") and selector is None:
            errors.append(invalid(path, dependency, "dependency can not leave name and labelSelector all empty"))
        label_selector(errors, f"{path}.labelSelector", selector)
    if errors:
        texts = [str(error) for error in dict.fromkeys(errors)]
        raise InterpreterError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
