"""Namespaces that a policy selects and that are synced to every cluster all the same."""

from __future__ import annotations

from pathlib import Path

from karmada.api.work import ClusterResourceBinding
from karmada.components.parts import parts_named
from karmada.components.rows import Shared
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import CONFIG_MAPS, NAMESPACES
from karmada.kube.objects.types import Obj
from tests.support.fleet import Fleet, config_map, fleet

CONTROLLERS = ("namespace", "binding", "execution", "bindingStatus")
SKIP = "namespace.karmada.io/skip-auto-propagation"
ID = "clusterresourcebinding.karmada.io/permanent-id"
NAME = "clusterresourcebinding.karmada.io/name"
KEPT = "Namespaces are synced to every cluster: it stays in m2, whatever the placement says."


def synced(context: Context) -> list[object]:
    return list(parts_named(Shared(context), *CONTROLLERS))


async def team_in(plane: Fleet, *clusters: str, **labels: str) -> Obj:
    """A Namespace that is in the given clusters by a binding, with something of the members' own in it."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}
    template = await plane.client.create(NAMESPACES, space)
    await plane.bind(template, list(clusters))
    await plane.until_applied("team-namespace", "")
    for name in clusters:
        await plane.members[name].client.create(CONFIG_MAPS, config_map("local", namespace="team"))
    return template


async def narrow(plane: Fleet) -> None:
    patch = {"spec": {"clusters": [{"name": "m1"}]}}
    await plane.client.patch(ClusterResourceBinding.gvr, "team-namespace", "", patch)


async def test_narrowing_the_placement_keeps_a_synced_namespace_with_its_content(tmp_path: Path) -> None:
    async with fleet(tmp_path, "m1", "m2", parts=synced) as plane:
        template = await team_in(plane, "m1", "m2")
        await narrow(plane)
        work = await plane.until_work("m2", template, lambda w: not meta.labels(w).get(ID))
        assert not meta.is_deleting(work)
        await plane.rest()
        assert ("Normal", "NamespaceKept", KEPT) in await plane.events("team-namespace", "")
        assert await plane.members["m2"].get(CONFIG_MAPS, "local", "team") is not None
        binding = await plane.until_binding(
            "team-namespace", lambda b: len(b["status"].get("aggregatedStatus") or ()) == 1, ""
        )
        assert binding["status"]["aggregatedStatus"][0]["clusterName"] == "m1"


async def test_narrowing_removes_a_namespace_that_only_its_policy_propagates(tmp_path: Path) -> None:
    async with fleet(tmp_path, "m1", "m2", parts=synced) as plane:
        template = await team_in(plane, "m1", "m2", **{SKIP: "true"})
        await narrow(plane)
        await plane.until_work_gone("m2", template)
        await plane.members["m2"].until_gone(NAMESPACES, "team", namespace="")


async def test_a_synced_namespace_outlives_its_binding(tmp_path: Path) -> None:
    async with fleet(tmp_path, "m1", parts=synced) as plane:
        template = await team_in(plane, "m1")
        await plane.client.delete(ClusterResourceBinding.gvr, "team-namespace")
        await plane.until_work("m1", template, lambda w: not meta.annotations(w).get(NAME))
        await plane.rest()
        assert await plane.members["m1"].get(CONFIG_MAPS, "local", "team") is not None
