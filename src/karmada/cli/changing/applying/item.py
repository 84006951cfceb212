"""One object that is to be applied."""

from __future__ import annotations

from dataclasses import dataclass

from karmada.kube.client.discovery import Mapping
from karmada.kube.objects.types import Obj


@dataclass(frozen=True, slots=True)
class Item:
    """`source` is the file it came from."""

    obj: Obj
    mapping: Mapping
    source: str

    @property
    def name(self) -> str:
        return str(self.obj["metadata"].get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"].get("namespace") or "") if self.mapping.namespaced else ""

    @property
    def place(self) -> str:
        """As errors describe it."""
        group, version, resource = self.mapping.gvr
        gv = f"{group}/{version}"
        lines = [
            f'Resource: "{gv}, Resource={resource}", GroupVersionKind: "{gv}, Kind={self.mapping.gvk.kind}"',
            f'Name: "{self.name}", Namespace: "{self.namespace}"',
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Done:
    """The object as the server has it now, and what was done with it."""

    obj: Obj
    word: str
