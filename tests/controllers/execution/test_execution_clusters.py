"""Works of clusters that are not ready, slow, leaving, or somebody else's; and restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.policy import OverridePolicy
from karmada.api.work import ResourceBinding, Work
from karmada.components.parts import PROPAGATION, parts_named
from karmada.components.rows import Part, Shared
from karmada.controllers.context import Context
from karmada.kube.client.transport import Call
from karmada.kube.objects import meta
from karmada.kube.objects.doc import detect_mutations
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime import informers
from karmada.kube.runtime.controller import Controller
from karmada.kube.runtime.keys import Key
from tests.support.control_plane import assemble
from tests.support.eventually import eventually
from tests.support.fleet import (
    Fleet,
    TestMember,
    brief,
    condition,
    config_map,
    deployment,
    encoded,
    fleet,
    is_applied,
    manifest,
    new_server,
    until,
)
from tests.support.objects import kube_object

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def all_applied(found: Fleet, cluster: str, templates: list[Obj]) -> None:
    works, wanted = found.plane.context.informers.of(Work.gvr), {meta.name(template) for template in templates}

    def missing() -> set[str]:
        applied = [work for work in works.list(f"karmada-es-{cluster}") if is_applied(work)]
        return wanted - {meta.name(manifest(work)) for work in applied}

    await until(lambda: nothing(missing()))


async def nothing(missing: set[str]) -> Obj | None:
    return None if missing else {"missing": 0}


async def test_a_cluster_that_is_not_ready_gets_its_works_when_it_is(two: Fleet) -> None:
    await two.plane.set_ready("m1", "False")
    before = two.members["m1"].writes()
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    await two.until_work("m2", template, is_applied)
    work = await two.until_work("m1", template, lambda w: condition(w, "Dispatching") == "True")
    await two.rest()
    assert not condition(work, "Applied")
    assert two.members["m1"].writes() == before
    await two.plane.set_ready("m1", "True")
    await two.until_work("m1", template, is_applied)
    await two.until_applied("settings-configmap")


async def test_a_cluster_that_becomes_ready_while_a_work_is_reported_gets_it(two_alone: Fleet) -> None:
    """The Work must not be set aside after the change it waits for."""
    plane = two_alone.plane
    await plane.set_ready("m1", "False")
    await two_alone.rest()
    transport = plane.context.client.transport
    original, intercepted = transport.call, False

    async def call(request: Call) -> object:
        nonlocal intercepted
        if not intercepted and request.method == "PATCH" and "/karmada-es-m1/works/" in request.path:
            intercepted = True
            await plane.set_ready("m1", "True")
            clusters = plane.context.informers.of(Cluster.gvr)
            await clusters.until(lambda: condition(clusters.get(Key("", "m1")) or {}, "Ready") == "True")
        return await original(request)

    transport.call = call  # type: ignore[method-assign,assignment]
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two_alone.until_work("m1", template, is_applied)
    assert intercepted


async def test_works_of_an_unready_cluster_wait_with_their_deletion(two: Fleet) -> None:
    template = await two.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two.until_work("m1", template, is_applied)
    await two.plane.set_ready("m1", "Unknown")
    await two.client.delete(CONFIG_MAPS, "settings", "default")
    await two.until_work("m1", template, meta.is_deleting)
    await two.rest()
    assert await two.work("m1", template) is not None
    await two.plane.set_ready("m1", "True")
    await two.until_work_gone("m1", template)
    await two.members["m1"].until_gone(CONFIG_MAPS, "settings")


async def test_works_of_an_unready_cluster_that_leaves_go_and_their_objects_stay(two_alone: Fleet) -> None:
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two_alone.until_work("m1", template, is_applied)
    await two_alone.plane.set_ready("m1", "False")
    await two_alone.client.delete(CONFIG_MAPS, "settings", "default")
    await two_alone.until_work("m1", template, meta.is_deleting)
    await two_alone.client.patch(Cluster.gvr, "m1", "", {"metadata": {"finalizers": ["karmada.io/cluster-controller"]}})
    await two_alone.client.delete(Cluster.gvr, "m1")
    await two_alone.until_work_gone("m1", template)
    assert await two_alone.members["m1"].get(CONFIG_MAPS, "settings") is not None


async def test_a_cluster_that_hangs_while_it_is_removed_is_released_once_it_is_not_ready(
    two_alone: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada.controllers.execution.controller._LEAVING_SECONDS", 0.1)
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["m1"])
    await two_alone.until_work("m1", template, is_applied)
    member = two_alone.members["m1"]
    member.gate.open.clear()
    await two_alone.client.patch(Cluster.gvr, "m1", "", {"metadata": {"finalizers": ["karmada.io/cluster-controller"]}})
    await two_alone.client.delete(Cluster.gvr, "m1")
    await two_alone.client.delete(CONFIG_MAPS, "settings", "default")
    await eventually(lambda: member.gate.requests["DELETE"])
    await two_alone.plane.set_ready("m1", "False")
    await two_alone.until_work_gone("m1", template)
    member.gate.open.set()


async def test_clusters_in_mode_pull_are_left_to_their_agents(two_alone: Fleet) -> None:
    await two_alone.plane.add_cluster("pulled", "Pull")
    await two_alone.client.create(NAMESPACES, kube_object("v1", "Namespace", "karmada-es-pulled"))
    await two_alone.plane.set_ready("pulled", "True")
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["pulled"])
    work = await two_alone.until_work("pulled", template)
    await two_alone.rest()
    assert "status" not in work or not work["status"]


async def test_a_member_that_hangs_holds_nobody_else_up(two: Fleet) -> None:
    for name in ("first", "second"):
        await two.propagate(CONFIG_MAPS, config_map(name), ["m1", "m2"])
        await two.until_applied(f"{name}-configmap")
    hanging = two.members["m1"].gate
    hanging.open.clear()
    templates = [await two.propagate(CONFIG_MAPS, config_map(f"c{n}"), ["m1", "m2"]) for n in range(150)]
    await all_applied(two, "m2", templates)
    held_up = [await two.until_work("m1", template) for template in templates]
    assert not any(is_applied(work) for work in held_up)
    late = await two.propagate(CONFIG_MAPS, config_map("late"), ["m2"])
    await two.until_work("m2", late, is_applied)
    assert not any(is_applied(work) for work in [await two.until_work("m1", template) for template in templates])
    hanging.open.set()
    await all_applied(two, "m1", templates)


async def test_a_dead_member_is_tried_now_and_then_and_not_once_for_every_work(two_alone: Fleet) -> None:
    for name in ("first", "second"):
        await two_alone.propagate(CONFIG_MAPS, config_map(name), ["m1", "m2"])
        await two_alone.until_applied(f"{name}-configmap")
    cluster = await two_alone.client.get(Cluster.gvr, "m1")
    await two_alone.client.patch(Cluster.gvr, "m1", "", {"spec": {"apiEndpoint": "https://127.0.0.1:1"}})
    calls = 0
    transport = two_alone.plane.context.members.get("m1").transport
    await eventually(lambda: transport.config.server == "https://127.0.0.1:1")
    call = transport.call

    async def counted(requested: Call) -> object:
        nonlocal calls
        calls += 1
        return await call(requested)

    transport.call = counted  # type: ignore[method-assign,assignment]
    templates = [await two_alone.propagate(CONFIG_MAPS, config_map(f"c{n}"), ["m1", "m2"]) for n in range(150)]
    await all_applied(two_alone, "m2", templates)
    assert 0 < calls < 150
    await two_alone.client.patch(Cluster.gvr, "m1", "", {"spec": {"apiEndpoint": cluster["spec"]["apiEndpoint"]}})
    await all_applied(two_alone, "m1", templates)


async def test_a_cluster_without_access_says_why(two_alone: Fleet) -> None:
    await two_alone.plane.add_cluster("m3")
    await two_alone.client.create(NAMESPACES, kube_object("v1", "Namespace", "karmada-es-m3"))
    await two_alone.plane.set_ready("m3", "True")
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["m3"])
    work = await two_alone.until_work("m3", template, lambda w: condition(w, "Applied"))
    message = "Failed to apply all manifests (0/1): the api endpoint of cluster m3 is empty"
    assert brief(work, "Applied") == ("False", "AppliedFailed", message)


@asynccontextmanager
async def restarted(found: Fleet) -> AsyncIterator[Controller]:
    """The same server, a new process."""

    def parts(context: Context) -> list[Part]:
        return parts_named(Shared(context), *PROPAGATION)

    async with assemble(found.plane.server, parts).manager as manager:
        yield manager.controllers["execution-controller"]


async def versions(found: Fleet) -> dict[str, str]:
    return {meta.name(work): meta.resource_version(work) for work in (await found.client.list_all(Work.gvr)).items}


async def test_a_restart_compares_instead_of_sending(two_alone: Fleet) -> None:
    templates = [await two_alone.propagate(DEPLOYMENTS, deployment(f"d{n}"), {"m1": 2}) for n in range(20)]
    templates.append(await two_alone.propagate(CONFIG_MAPS, config_map("c"), ["m1"]))
    for template in templates:
        await two_alone.until_work("m1", template, is_applied)
    await two_alone.rest()
    before = await versions(two_alone)
    member = two_alone.members["m1"]
    await two_alone.plane.manager.stop()
    # somebody changes and deletes things while nobody looks
    await member.client.patch(DEPLOYMENTS, "d0", "default", {"spec": {"replicas": 9}})
    await member.client.delete(DEPLOYMENTS, "d1", "default")
    requested = len(member.gate.paths)
    async with restarted(two_alone) as execution:
        await member.until(DEPLOYMENTS, "d0", lambda d: d["spec"]["replicas"] == 2)
        await member.until(DEPLOYMENTS, "d1")
        await two_alone.until_work("m1", templates[1], lambda w: brief(w, "Applied")[1] == "ReCreateSuccessful")
        await eventually(lambda: execution.queue.idle and not execution.queue.delayed)
    since = member.gate.paths[requested:]
    assert sorted(call for call in since if call[0] != "GET") == [
        ("POST", "/apis/apps/v1/namespaces/default/deployments"),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/d0"),
    ]
    assert [call for call in since if call[0] == "GET" and "/namespaces/" in call[1]] == []
    after = await versions(two_alone)
    touched = {meta.name(await two_alone.until_work("m1", template)) for template in templates[:2]}
    assert {name for name, version in after.items() if before[name] != version} <= touched


def image(obj: Obj) -> str:
    return str(obj["spec"]["template"]["spec"]["containers"][0]["image"])


@pytest.mark.parametrize("few", [500, 5])
async def test_whatever_changed_while_no_controller_ran_is_repaired(
    two_alone: Fleet, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a few objects, and of so many that they are delivered by name; parsed as in production."""
    monkeypatch.setattr(informers, "_FEW", few)
    detect_mutations(on=False)
    made = [await two_alone.propagate(DEPLOYMENTS, deployment(f"d{n}"), {"m1": 2, "m2": 2}) for n in range(12)]
    for template in made:
        await two_alone.until_applied(f"{meta.name(template)}-deployment")
    await two_alone.rest()
    await two_alone.plane.manager.stop()
    client, (m1, m2) = two_alone.client, two_alone.members.values()

    await m1.client.patch(DEPLOYMENTS, "d0", "default", {"spec": {"replicas": 9}})
    await m2.client.delete(DEPLOYMENTS, "d1", "default")
    newer = await client.get(DEPLOYMENTS, "d2", "default")
    pod = {**newer["spec"]["template"], "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]}}
    await two_alone.touch(DEPLOYMENTS, {**newer, "spec": {**newer["spec"], "template": pod}})
    await two_alone.set_binding("d3-deployment", {"clusters": [{"name": "m1", "replicas": 2}]})
    edited = await two_alone.work("m1", made[4])
    assert edited is not None
    wrong = {**manifest(edited), "spec": {**manifest(edited)["spec"], "replicas": 7}}
    await client.update(Work.gvr, {**edited, "spec": {**edited["spec"], "workload": {"manifests": [wrong]}}})
    tag = {"component": "Tag", "operator": "replace", "value": "1.28"}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d5"}
    spec = {"resourceSelectors": [selector], "overrideRules": [{"overriders": {"imageOverrider": [tag]}}]}
    metadata = {"namespace": "default", "name": "tag"}
    await client.create(OverridePolicy.gvr, {"metadata": metadata, "spec": spec})
    forgotten = await client.get(ResourceBinding.gvr, "d6-deployment", "default")
    status = {**forgotten["status"], "aggregatedStatus": forgotten["status"]["aggregatedStatus"][:1]}
    await client.update_status(ResourceBinding.gvr, {**forgotten, "status": status})

    async with restarted(two_alone):
        await m1.until(DEPLOYMENTS, "d0", lambda d: d["spec"]["replicas"] == 2)
        await m2.until(DEPLOYMENTS, "d1")
        await m2.until_gone(DEPLOYMENTS, "d3")
        await two_alone.until_work("m1", made[4], lambda w: manifest(w)["spec"]["replicas"] == 2)
        for member in (m1, m2):
            await member.until(DEPLOYMENTS, "d2", lambda d: image(d) == "nginx:1.27")
            await member.until(DEPLOYMENTS, "d5", lambda d: image(d) == "nginx:1.28")
        await two_alone.until_binding("d6-deployment", lambda b: len(b["status"]["aggregatedStatus"]) == 2)
    for untouched in ("d3", "d4", "d7", "d11"):
        await m1.until(DEPLOYMENTS, untouched, lambda d: d["spec"]["replicas"] == 2 and image(d) == "nginx:1.25")


async def test_a_work_that_was_applied_but_not_noted_is_noted_after_a_restart(two_alone: Fleet) -> None:
    """As if the process had been killed between the member's answer and the status."""
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["m1"])
    work = await two_alone.until_work("m1", template, is_applied)
    await two_alone.rest()
    await two_alone.plane.manager.stop()
    await two_alone.client.update_status(Work.gvr, {**work, "status": {}})
    member = two_alone.members["m1"]
    before = await member.get(CONFIG_MAPS, "settings")
    async with restarted(two_alone):
        await two_alone.until_work("m1", template, is_applied)
    assert await member.get(CONFIG_MAPS, "settings") == before


async def test_a_deletion_that_was_cut_short_is_finished_after_a_restart(two_alone: Fleet) -> None:
    template = await two_alone.propagate(CONFIG_MAPS, config_map(), ["m1", "m2"])
    await two_alone.until_applied("settings-configmap")
    await two_alone.plane.manager.stop()
    await two_alone.client.delete(CONFIG_MAPS, "settings", "default")
    await until(lambda: _deleting(two_alone))
    await two_alone.members["m1"].client.delete(CONFIG_MAPS, "settings", "default")
    async with restarted(two_alone):
        for cluster in ("m1", "m2"):
            await two_alone.until_work_gone(cluster, template)
    assert await two_alone.members["m2"].get(CONFIG_MAPS, "settings") is None


async def _deleting(found: Fleet) -> Obj | None:
    binding = await found.binding("settings-configmap")
    return binding if binding is not None and meta.is_deleting(binding) else None


async def test_a_cluster_that_leaves_and_joins_again_is_another_member(fleet_folder: Path) -> None:
    async with fleet(fleet_folder, "m1") as found:
        template = await found.propagate(CONFIG_MAPS, config_map(), ["m1"])
        await found.until_applied("settings-configmap")
        await found.client.delete(Cluster.gvr, "m1")
        await eventually(lambda: found.plane.context.members.known("m1") is None)
        other = new_server(fleet_folder, "other")
        await other.start()
        try:
            secret = await found.client.get(SECRETS, "m1", "karmada-cluster")
            data = {**secret["data"], "caBundle": encoded(other.pki.ca.cert_pem)}
            await found.client.update(SECRETS, {**secret, "data": data})
            ref = {"namespace": "karmada-cluster", "name": "m1"}
            await found.plane.add_cluster("m1", apiEndpoint=other.url, secretRef=ref)
            await found.plane.set_ready("m1", "True")
            await TestMember("m1", other).until(CONFIG_MAPS, "settings")
            await found.until_work("m1", template, is_applied)
        finally:
            await other.stop()
