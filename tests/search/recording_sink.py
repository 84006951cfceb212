"""A sink that keeps what it is given, as an index would."""

from __future__ import annotations

from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj


class RecordingSink:
    def __init__(self) -> None:
        self.objects: dict[tuple[str, GVR, str], Obj] = {}
        """By cluster, resource and uid."""
        self.calls: list[tuple[str, str]] = []
        """What was called, and with which name."""

    def upsert(self, cluster: str, gvr: GVR, obj: Doc) -> None:
        self.calls.append(("upsert", obj.name))
        self.objects[cluster, gvr, obj.uid] = obj.object()

    def delete(self, cluster: str, gvr: GVR, namespace: str, name: str, uid: str) -> None:  # noqa: ARG002
        self.calls.append(("delete", name))
        del self.objects[cluster, gvr, uid]

    def replaced(self, cluster: str, gvr: GVR) -> None:  # noqa: ARG002
        self.calls.append(("replaced", cluster))

    def forget(self, cluster: str, gvr: GVR | None = None) -> None:
        self.calls.append(("forget", cluster))
        self.objects = {key: obj for key, obj in self.objects.items() if key[0] != cluster or gvr not in (None, key[1])}
