"""What controllers leave alone of a resource because it hung their event loop, for those who may see that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.kube.runtime.quarantine import Entry
    from karmada.prediction.world import World


async def of_binding(world: World, binding: Obj) -> tuple[str, ...]:
    """Return what is left alone of a binding, its template, its policy and its Works, in words."""
    from karmada.api.well_known import CLUSTER_POLICY_NAME, POLICY_NAME, work_name
    from karmada.kube.objects import meta

    resource, annotations = binding["spec"]["resource"], meta.annotations(binding)
    kind, name, namespace = resource["kind"], resource["name"], meta.namespace(binding)
    return await _among(
        world,
        namespace,
        {
            (binding["kind"], meta.name(binding)),
            (kind, name),
            ("PropagationPolicy", annotations.get(POLICY_NAME, "")),
            ("ClusterPropagationPolicy", annotations.get(CLUSTER_POLICY_NAME, "")),
        },
        work_name(kind, name, namespace),
    )


async def of_template(world: World, template: Obj) -> tuple[str, ...]:
    """Return what is left alone of a template that has no binding, in words."""
    from karmada.kube.objects import meta

    return await _among(world, meta.namespace(template), {(template["kind"], meta.name(template))})


async def _among(world: World, namespace: str, named: set[tuple[str, str]], work: str = "") -> tuple[str, ...]:
    from karmada.api.quarantine import LABEL, NAMESPACE, from_map
    from karmada.kube.objects import meta
    from karmada.kube.objects.gvrs import CONFIG_MAPS
    from karmada.kube.runtime.quarantine import WHOLE

    def concerns(entry: Entry) -> bool:
        kind, name = entry.object.get("kind", ""), meta.name(entry.object) if entry.object else ""
        if entry.key == WHOLE or (work and (kind, name) == ("Work", work)):
            return True
        return (kind, name) in named and meta.namespace(entry.object) in ("", namespace)

    maps = [one for one in await world.readable(CONFIG_MAPS, NAMESPACE) if LABEL in meta.labels(one)]
    return tuple(_words(entry) for one in maps if (entry := from_map(one)) is not None and concerns(entry))


def _words(entry: Entry) -> str:
    what = "all keys" if entry.key == "*" else entry.key
    return f"{entry.controller} leaves {what} alone since {entry.since}, when it hung for {entry.seconds:g}s"
