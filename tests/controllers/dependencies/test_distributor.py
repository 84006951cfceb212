"""What templates depend on follows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from karmada.controllers.context import Context
from karmada.controllers.dependencies import dependency_parts
from karmada.controllers.detector import detector_parts
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS, EVENTS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from tests.support.cases import cases
from tests.support.control_plane import running
from tests.support.propagation import BINDINGS, POLICIES, Propagation, config_map, deployment
from tests.support.propagation import policy as a_policy

pytestmark = pytest.mark.asyncio(loop_scope="module")

ATTACHED = "resourcebinding.karmada.io/depended-by-"
LABEL = ATTACHED + "5bdc5c4dcf"
ID = "resourcebinding.karmada.io/permanent-id"
NOTE = "resourcebinding.karmada.io/dependencies"
FINALIZERS = ["karmada.io/binding-controller", "karmada.io/binding-dependencies-distributor"]


def parts(context: Context) -> Sequence[Reconciler]:
    interpreter = Interpreter()
    return [*detector_parts(context, interpreter), *dependency_parts(context, interpreter)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_plane(folder: Path) -> AsyncIterator[Propagation]:
    async with running(folder, parts) as control_plane:
        yield Propagation(control_plane)


@pytest_asyncio.fixture(loop_scope="module")
async def plane(module_plane: Propagation) -> AsyncIterator[Propagation]:
    await module_plane.clear()
    yield module_plane


def mounting(*config_maps: str) -> Obj:
    return {"volumes": [{"name": name, "configMap": {"name": name}} for name in config_maps]}


def secret(name: str, **metadata: Any) -> Obj:
    metadata = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def named(name: str, kind: str = "Deployment") -> Obj:
    return {"apiVersion": "apps/v1" if kind == "Deployment" else "v1", "kind": kind, "name": name}


async def scheduled(plane: Propagation, name: str, *clusters: str) -> Obj:
    """What the scheduler would do."""
    return await plane.change(BINDINGS, name, {"spec": {"clusters": [{"name": cluster} for cluster in clusters]}})


async def followed(plane: Propagation, name: str = "settings-configmap") -> dict[str, list[str]]:
    """Whom a binding follows, and where to."""
    found = await plane.binding(name)
    snapshots = (found or {"spec": {}})["spec"].get("requiredBy") or []
    return {each["name"]: [cluster["name"] for cluster in each.get("clusters") or ()] for each in snapshots}


async def test_a_dependency_gets_a_binding_that_follows(plane: Propagation) -> None:
    await plane.apply(deployment(pod=mounting("settings")), config_map(), a_policy(propagateDeps=True))
    assert await plane.binding("settings-configmap") is None
    plane.writes.clear()
    await scheduled(plane, "nginx-deployment", "m1", "m2")
    assert plane.writes == ["PUT resourcebindings nginx-deployment", "POST resourcebindings settings-configmap"]
    independent = await plane.get(BINDINGS, "nginx-deployment")
    assert independent["metadata"]["finalizers"] == FINALIZERS
    assert independent["metadata"]["annotations"][NOTE] == (
        '[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"settings"}]'
    )
    binding, template = await plane.get(BINDINGS, "settings-configmap"), await plane.get(CONFIG_MAPS, "settings")
    metadata = binding["metadata"]
    assert metadata["labels"].keys() == {LABEL, ID}
    assert metadata["labels"][LABEL] == independent["metadata"]["labels"][ID]
    assert metadata["finalizers"] == ["karmada.io/binding-controller"]
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("ConfigMap", template["metadata"]["uid"], True)
    assert binding["spec"] == {
        "resource": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "default",
            "name": "settings",
            "uid": template["metadata"]["uid"],
            "resourceVersion": template["metadata"]["resourceVersion"],
        },
        "requiredBy": [
            {"namespace": "default", "name": "nginx-deployment", "clusters": [{"name": "m1"}, {"name": "m2"}]}
        ],
        "conflictResolution": "Abort",
        "preserveResourcesOnDeletion": False,
    }
    shown = "[{APIVersion:v1 Kind:ConfigMap Namespace:default Name:settings LabelSelector:nil}]"
    assert await plane.events("nginx") == [
        ("Normal", "GetReplicasSucceed", "Get replicas of resource template successfully."),
        ("Normal", "ApplyPolicySucceed", "Apply policy(default/pp) succeed"),
        ("Normal", "GetDependenciesSucceed", f"Get dependencies({shown}) succeed."),
    ]
    assert await plane.events("nginx-deployment") == [
        ("Normal", "SyncScheduleResultToDependenciesSucceed", "Sync schedule results to dependencies succeed.")
    ]


async def test_without_propagate_deps_nothing_follows(plane: Propagation) -> None:
    await plane.apply(deployment(pod=mounting("settings")), config_map(), a_policy())
    await scheduled(plane, "nginx-deployment", "m1")
    assert await plane.binding("settings-configmap") is None


async def set_up(plane: Propagation, *config_maps: str, clusters: Sequence[str] = ("m1",)) -> None:
    await plane.apply(*(config_map(name) for name in config_maps))
    await plane.apply(deployment(pod=mounting(*config_maps)), a_policy("pp", named("nginx"), propagateDeps=True))
    await scheduled(plane, "nginx-deployment", *clusters)


async def test_it_follows_when_its_dependent_moves(plane: Propagation) -> None:
    await set_up(plane, "settings")
    await scheduled(plane, "nginx-deployment", "m3", "m1")
    assert await followed(plane) == {"nginx-deployment": ["m3", "m1"]}
    await scheduled(plane, "nginx-deployment")
    assert await followed(plane) == {"nginx-deployment": []}


async def test_a_dependency_that_comes_later_is_attached_then(plane: Propagation) -> None:
    await set_up(plane)
    await plane.change(DEPLOYMENTS, "nginx", {"spec": {"template": {"spec": mounting("settings")}}})
    assert await plane.binding("settings-configmap") is None
    await plane.apply(config_map())
    assert await followed(plane) == {"nginx-deployment": ["m1"]}


async def test_a_changed_dependency_changes_its_binding_and_nothing_else(plane: Propagation) -> None:
    await set_up(plane, "settings", "other")
    plane.writes.clear()
    changed = await plane.change(CONFIG_MAPS, "settings", {"data": {"k": "new"}})
    binding = await plane.get(BINDINGS, "settings-configmap")
    assert binding["spec"]["resource"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
    assert plane.writes == ["PUT resourcebindings settings-configmap"]


async def test_what_is_needed_no_longer_is_detached(plane: Propagation) -> None:
    await set_up(plane, "settings", "other")
    await plane.change(DEPLOYMENTS, "nginx", {"spec": {"template": {"spec": mounting("other")}}})
    binding = await plane.get(BINDINGS, "settings-configmap")
    assert LABEL not in binding["metadata"]["labels"]
    assert "requiredBy" not in binding["spec"]
    assert binding["spec"]["conflictResolution"] == "Abort"
    assert "preserveResourcesOnDeletion" not in binding["spec"]
    assert await followed(plane, "other-configmap") == {"nginx-deployment": ["m1"]}


@cases(True, False)
async def test_everything_is_detached_with_the_dependent(switched_off: bool, plane: Propagation) -> None:
    await set_up(plane, "settings", "other")
    if switched_off:
        await plane.change(POLICIES, "pp", {"spec": {"propagateDeps": False}})
    else:
        await plane.delete(DEPLOYMENTS, "nginx")
    for name in ("settings-configmap", "other-configmap"):
        assert await followed(plane, name) == {}
        assert LABEL not in (await plane.get(BINDINGS, name))["metadata"]["labels"]
    assert (await plane.get(BINDINGS, "nginx-deployment"))["metadata"]["finalizers"] == FINALIZERS[:1]


async def two(plane: Propagation, **second: Any) -> None:
    """Two Deployments need the same ConfigMap; the second has a policy of its own."""
    await set_up(plane, "settings")
    policy = a_policy("second", named("second"), propagateDeps=True, **second)
    await plane.apply(deployment("second", pod=mounting("settings")), policy)
    await scheduled(plane, "second-deployment", "m2")


async def test_several_dependents_share_a_binding(plane: Propagation) -> None:
    await two(plane)
    assert await followed(plane) == {"nginx-deployment": ["m1"], "second-deployment": ["m2"]}
    assert [reason for _, reason, _ in await plane.events("settings-configmap")] == []
    await plane.delete(DEPLOYMENTS, "nginx")
    assert await followed(plane) == {"second-deployment": ["m2"]}


async def conflicts(plane: Propagation) -> int:
    """How often the conflict was emitted."""
    await plane.events("settings-configmap")
    found = (await plane.client.list_all(EVENTS, "default")).items
    return sum(event.get("count", 1) for event in found if event["reason"] == "DependencyPolicyConflict")


async def test_dependents_that_disagree_are_warned_and_the_bolder_wins(plane: Propagation) -> None:
    await two(plane, conflictResolution="Overwrite", preserveResourcesOnDeletion=True)
    spec = (await plane.get(BINDINGS, "settings-configmap"))["spec"]
    assert (spec["conflictResolution"], spec["preserveResourcesOnDeletion"]) == ("Overwrite", True)
    assert await plane.events("settings-configmap") == [
        (
            "Warning",
            "DependencyPolicyConflict",
            "Dependency policy conflict detected: ConflictResolution conflicted (Overwrite vs Abort); "
            "PreserveResourcesOnDeletion conflicted (true vs false).",
        )
    ]
    emitted = await conflicts(plane)
    await plane.change(DEPLOYMENTS, "second", {"metadata": {"labels": {"another": "pass"}}})
    assert await conflicts(plane) > emitted
    await plane.delete(DEPLOYMENTS, "second")
    spec = (await plane.get(BINDINGS, "settings-configmap"))["spec"]
    assert (spec["conflictResolution"], spec["preserveResourcesOnDeletion"]) == ("Abort", False)


@cases(True, False)
async def test_a_dependency_with_a_policy_of_its_own_has_one_binding_for_both(
    policy_first: bool, plane: Propagation
) -> None:
    own = a_policy("own", named("settings", "ConfigMap"), conflictResolution="Overwrite")
    if policy_first:
        await plane.apply(own)
    await set_up(plane, "settings")
    if not policy_first:
        await plane.apply(own)
    await scheduled(plane, "settings-configmap", "m9")
    binding = await plane.get(BINDINGS, "settings-configmap")
    assert await followed(plane) == {"nginx-deployment": ["m1"]}
    assert binding["spec"]["clusters"] == [{"name": "m9"}]
    assert binding["spec"]["conflictResolution"] == "Overwrite"
    await plane.delete(DEPLOYMENTS, "nginx")
    binding = await plane.get(BINDINGS, "settings-configmap")
    assert "requiredBy" not in binding["spec"]
    assert binding["spec"]["conflictResolution"] == "Overwrite"
    assert await plane.claim(BINDINGS, "settings-configmap") == "default/own"


async def test_a_dependency_made_anew_waits_until_the_old_binding_is_gone(plane: Propagation) -> None:
    await set_up(plane, "settings")
    await plane.delete(CONFIG_MAPS, "settings")
    (again,) = await plane.apply(config_map())
    recorded = await plane.events("nginx-deployment")
    text = (
        "failed to update resourceBinding(default/settings-configmap) due to different owner reference UID, will try "
        "again later after binding is garbage collected, see https://github.com/karmada-io/karmada/issues/6034"
    )
    assert ("Warning", "SyncScheduleResultToDependenciesFailed", text) in recorded
    await plane.change(BINDINGS, "settings-configmap", {"metadata": {"finalizers": None}})
    await plane.rest(5)
    binding = await plane.get(BINDINGS, "settings-configmap")
    assert binding["spec"]["resource"]["uid"] == again["metadata"]["uid"]


async def test_after_a_restart_nothing_is_written_again(plane: Propagation) -> None:
    await set_up(plane, "settings", "other")
    plane.writes.clear()
    async with plane.another(parts):
        await plane.rest()
        assert plane.writes == []
        await plane.change(CONFIG_MAPS, "settings", {"data": {"k": "new"}})
    assert set(plane.writes) == {"PUT resourcebindings settings-configmap"}


class Scripted(Interpreter):
    """Deployments depend on what the test says."""

    answer: list[Obj] | Exception

    async def get_dependencies(self, obj: Obj) -> list[Obj]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if obj["kind"] == "Deployment" else []


@pytest_asyncio.fixture(loop_scope="module")
async def scripted(folder: Path) -> AsyncIterator[tuple[Propagation, Scripted]]:
    interpreter = Scripted()

    def scripted_parts(context: Context) -> Sequence[Reconciler]:
        return [*detector_parts(context, Interpreter()), *dependency_parts(context, interpreter)]

    async with running(folder, scripted_parts) as control_plane:
        propagation = Propagation(control_plane)
        await propagation.rest()
        yield propagation, interpreter


async def test_dependencies_by_labels_come_and_go_with_their_labels(scripted: tuple[Propagation, Scripted]) -> None:
    plane, interpreter = scripted
    selector = {"matchLabels": {"for": "nginx"}}
    interpreter.answer = [{"apiVersion": "v1", "kind": "Secret", "namespace": "default", "labelSelector": selector}]
    await plane.apply(secret("a", labels={"for": "nginx"}), secret("b"))
    await set_up(plane)
    assert await followed(plane, "a-secret") == {"nginx-deployment": ["m1"]}
    assert await plane.binding("b-secret") is None
    await plane.change(SECRETS, "b", {"metadata": {"labels": {"for": "nginx"}}})
    assert await followed(plane, "b-secret") == {"nginx-deployment": ["m1"]}
    await plane.change(SECRETS, "a", {"metadata": {"labels": None}})
    assert await followed(plane, "a-secret") == {}
    await plane.apply(secret("c", labels={"for": "nginx"}))
    assert await followed(plane, "c-secret") == {"nginx-deployment": ["m1"]}


NOTHING_NAMED = {"apiVersion": "v1", "kind": "Secret", "namespace": "default"}


@cases(
    (InterpreterError("no pods"), "nginx", ("Warning", "GetDependenciesFailed", "no pods")),
    (
        [NOTHING_NAMED],
        "nginx-deployment",
        (
            "Warning",
            "SyncScheduleResultToDependenciesFailed",
            "the Name and LabelSelector in the DependentObjectReference cannot be empty at the same time",
        ),
    ),
)
async def test_failures_are_reported(
    answer: list[Obj] | Exception, subject: str, event: tuple[str, str, str], scripted: tuple[Propagation, Scripted]
) -> None:
    plane, interpreter = scripted
    interpreter.answer = answer
    await set_up(plane)
    assert (await plane.events(subject))[-1] == event


async def test_one_broken_dependency_does_not_hold_up_the_others(scripted: tuple[Propagation, Scripted]) -> None:
    plane, interpreter = scripted
    unknown = {"apiVersion": "nowhere.io/v1", "kind": "Nothing", "namespace": "default", "name": "x"}
    interpreter.answer = [
        unknown,
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "settings"},
    ]
    await plane.apply(config_map())
    await set_up(plane)
    assert await followed(plane) == {"nginx-deployment": ["m1"]}


async def test_the_feature_can_be_switched_off() -> None:
    class Off:
        class gates:  # noqa: N801
            @staticmethod
            def enabled(_name: str) -> bool:
                return False

    assert dependency_parts(Off(), Interpreter()) == []  # type: ignore[arg-type]


async def test_dependencies_of_kinds_without_any_are_not_requested(plane: Propagation) -> None:
    policy = a_policy("pp", named("settings", "ConfigMap"), propagateDeps=True)
    await plane.apply(config_map(), policy)
    await scheduled(plane, "settings-configmap", "m1")
    binding = await plane.get(BINDINGS, "settings-configmap")
    assert NOTE not in binding["metadata"]["annotations"]
    assert Interpreter().enabled(GVK("", "v1", "ConfigMap"), "InterpretDependency") is False
