"""Renders a template for one cluster: revised replicas, overrides applied, labels and annotations of its binding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from karmada.api import well_known
from karmada.controllers.binding.completions import shares
from karmada.controllers.binding.kinds import BindingKind
from karmada.controllers.binding.targets import is_divided, is_workload, preserved_labels
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import REVISE_REPLICA
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.logging import get_logger
from karmada.overrides.hook import Override

log = get_logger("binding")
_STRATEGIES = (well_known.CONFLICT_OVERWRITE, well_known.CONFLICT_ABORT)


class Rendered(NamedTuple):
    """A manifest, and the labels and annotations of its Work."""

    manifest: Obj
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Renderer:
    """One template of one binding, for any of its clusters."""

    def __init__(
        self,
        kind: BindingKind,
        binding: Obj,
        template: Obj,
        goals: Mapping[str, int],
        interpreter: Interpreter,
        override: Override | None,
        *,
        carries_state: bool = False,
    ) -> None:
        spec = binding["spec"]
        self._template = template
        self._goals = goals
        self._interpreter = interpreter
        self._override = override
        self._revises = is_workload(spec) and interpreter.enabled(gvk_of(template), REVISE_REPLICA)
        self._completions = completions_of(template, spec, goals)
        self._labels = {kind.id_label: kind.id_of(binding)}
        self._state = preserved_labels(spec) if carries_state else {}
        self._marks = kind.marks(binding)
        self._overwrites = spec.get("conflictResolution") == "Overwrite"
        generation = meta.generation(template)
        self._generation = {well_known.TEMPLATE_GENERATION: str(generation)} if generation > 0 else {}

    @property
    def is_remote(self) -> bool:
        """Return whether rendering waits for responses over the network."""
        return self._revises and self._interpreter.remote(self._template, (REVISE_REPLICA,))

    async def render(self, cluster: str) -> Rendered:
        obj = self._template
        if self._revises:
            obj = await self._interpreter.revise_replica(obj, self._goals[cluster])
        if self._completions:
            obj = with_completions(obj, self._completions, cluster)
        applied: Mapping[str, str] = {}
        if self._override is not None:
            obj, applied = self._override(obj, cluster)
        metadata = obj["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **self._generation, **self._marks}
        labels = {**(metadata.get("labels") or {}), **self._labels, **self._state}
        return Rendered(
            {**obj, "metadata": {**metadata, "labels": labels, "annotations": annotations}},
            self._labels,
            {**self._marks, well_known.CONFLICT_RESOLUTION: self._strategy(obj), **applied},
        )

    def _strategy(self, obj: Obj) -> str:
        """Return the conflict resolution: the object's own annotation, else the policy's."""
        said = meta.annotations(obj).get(well_known.CONFLICT_RESOLUTION)
        if said in _STRATEGIES:
            return said
        if said:
            log.info("Unknown conflict resolution, ignored", value=said, name=meta.name(obj))
        return well_known.CONFLICT_OVERWRITE if self._overwrites else well_known.CONFLICT_ABORT


def completions_of(template: Obj, spec: Obj, goals: Mapping[str, int]) -> dict[str, int]:
    """Return a Job's completions by cluster; empty unless they are divided."""
    if template.get("kind") != "Job" or not (spec.get("replicas") or 0) > 0 or not is_divided(spec):
        return {}
    completions = (template.get("spec") or {}).get("completions")
    return {} if completions is None else shares(completions, goals, meta.uid(template))


def with_completions(obj: Obj, divided: Mapping[str, int], cluster: str) -> Obj:
    if cluster not in divided:
        raise ApiError(f"no completions found for cluster {cluster}")
    spec = obj.get("spec") or {}
    return obj if "completions" not in spec else {**obj, "spec": {**spec, "completions": divided[cluster]}}
