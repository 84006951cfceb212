"""An object of every third-party kind, as its users and its operator write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj

SAMPLES: Final[dict[GVK, dict[str, Any]]] = {
    gvk_of(sample["object"]): sample for sample in yaml.safe_load((Path(__file__).parent / "samples.yaml").read_text())
}


def is_cluster_wide(gvk: GVK) -> bool:
    return SAMPLES[gvk].get("scope") == "Cluster"


def template(gvk: GVK) -> Obj:
    metadata = {"name": "sample"} if is_cluster_wide(gvk) else {"name": "sample", "namespace": "default"}
    return {**SAMPLES[gvk]["object"], "metadata": metadata}
