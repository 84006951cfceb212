"""Manifest files: the objects that a YAML (or JSON) text holds."""

from __future__ import annotations

from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_all


def load_manifests(text: str | bytes) -> list[Obj]:
    """Return the objects of a manifest file, with the items of any List taken apart and empty documents left out."""
    found: list[Obj] = []
    for document in load_all(text):
        if not isinstance(document, dict):
            raise ValueError(f"not a Kubernetes object: {type(document).__name__}")
        if isinstance(document.get("items"), list) and str(document.get("kind", "")).endswith("List"):
            found += document["items"]
        else:
            found.append(document)
    for obj in found:
        if not obj.get("apiVersion") or not obj.get("kind"):
            raise ValueError(
                "Object 'apiVersion' or 'Kind' is missing" if not obj.get("kind") else "apiVersion not set"
            )
    return found
