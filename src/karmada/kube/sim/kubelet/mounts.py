"""The ConfigMaps and Secrets a pod cannot start without: those its volumes mount, and those its environment reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from karmada.kube.objects.types import Obj

Kind = Literal["configmap", "secret"]
_TITLES = {"configmap": "ConfigMap", "secret": "Secret"}


class Reference(NamedTuple):
    """`where` is the volume, or the container, that needs it; without a key the object alone will do."""

    where: str
    kind: Kind
    name: str
    keys: tuple[str, ...] = ()


def volume_references(pod: Obj) -> Iterator[Reference]:
    for volume in pod["spec"].get("volumes") or ():
        name = volume["name"]
        if "projected" in volume:
            for source in volume["projected"].get("sources") or ():
                yield from _sources(name, source, "name")
        else:
            yield from _sources(name, volume, "secretName")


def _sources(where: str, source: Obj, secret_name: str) -> Iterator[Reference]:
    kinds: tuple[tuple[Kind, str, str], ...] = (("configmap", "configMap", "name"), ("secret", "secret", secret_name))
    for kind, field, name_field in kinds:
        reference = source.get(field)
        if reference and not reference.get("optional") and reference.get(name_field):
            keys = tuple(item["key"] for item in reference.get("items") or ())
            yield Reference(where, kind, reference[name_field], keys)


def environment_references(containers: Iterable[Obj]) -> Iterator[Reference]:
    for container in containers:
        for source in container.get("envFrom") or ():
            for kind, field in _FROM:
                reference = source.get(field)
                if reference and not reference.get("optional") and reference.get("name"):
                    yield Reference(container["name"], kind, reference["name"])
        for variable in container.get("env") or ():
            source = variable.get("valueFrom")
            for kind, field in _KEYS if source else ():
                reference = source.get(field)
                if reference and not reference.get("optional") and reference.get("name"):
                    yield Reference(container["name"], kind, reference["name"], (reference["key"],))


_FROM: tuple[tuple[Kind, str], ...] = (("configmap", "configMapRef"), ("secret", "secretRef"))
_KEYS: tuple[tuple[Kind, str], ...] = (("configmap", "configMapKeyRef"), ("secret", "secretKeyRef"))


def problem(reference: Reference, namespace: str, found: Obj | None) -> str:
    """Return what is wrong with what is there; empty when nothing is."""
    if found is None:
        return f'{reference.kind} "{reference.name}" not found'
    for key in reference.keys:
        if key not in (found.get("data") or {}) and key not in (found.get("binaryData") or {}):
            return f"couldn't find key {key} in {_TITLES[reference.kind]} {namespace}/{reference.name}"
    return ""


def mount_message(reference: Reference, what: str) -> str:
    return f'MountVolume.SetUp failed for volume "{reference.where}" : {what}'
