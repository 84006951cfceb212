"""Scripts that users declare are what the controllers use, from the moment they are declared."""

from __future__ import annotations

from pathlib import Path

from karmada.kube.objects.gvrs import CONFIG_MAPS
from tests.interpreter.workloads import CUSTOMIZATIONS, SCRIPTS, WORKLOADS, CustomKinds, customization, played, workload
from tests.support.propagation import config_map


def test_every_operation_of_a_customization_is_used(tmp_path: Path) -> None:
    async def scenario(kinds: CustomKinds) -> None:
        await kinds.client.create(CUSTOMIZATIONS, customization(**SCRIPTS))
        await kinds.client.create(CONFIG_MAPS, config_map("settings"))
        await kinds.propagate(workload(replicas=4), propagateDeps=True)
        binding = await kinds.binding()
        assert binding["spec"]["replicas"] == 4
        assert {target["name"]: target["replicas"] for target in binding["spec"]["clusters"]} == {"m1": 2, "m2": 2}
        assert (await kinds.in_member("m1"))["spec"]["replicas"] == 2
        assert await kinds.in_member("m2", "settings", CONFIG_MAPS), "the dependency goes along"

        await kinds.report("m1", {"ready": 2, "noise": "x"})
        await kinds.report("m2", {"ready": 1})
        assert await kinds.health() == {"m1": "Healthy", "m2": "Unhealthy"}
        assert (await kinds.client.get(WORKLOADS, "app", "default"))["status"] == {"ready": 3}
        items = (await kinds.binding())["status"]["aggregatedStatus"]
        assert items[0]["status"] == {"ready": 2}

        member = kinds.fleet.members["m1"].client
        await member.patch(WORKLOADS, "app", "default", {"spec": {"paused": True}})
        await kinds.client.patch(WORKLOADS, "app", "default", {"spec": {"replicas": 6}})
        await kinds.fleet.run(5)
        assert (await kinds.in_member("m1"))["spec"] == {"replicas": 3, "config": "settings", "paused": True}

    played(tmp_path, scenario)


def test_a_change_takes_effect_on_what_is_there(tmp_path: Path) -> None:
    async def scenario(kinds: CustomKinds) -> None:
        await kinds.propagate(workload(replicas=4))
        assert "replicas" not in (await kinds.binding())["spec"]
        assert (await kinds.in_member("m1"))["spec"]["replicas"] == 4, "nobody knows what replicas are"
        await kinds.report("m1", {"ready": 1})
        assert (await kinds.health())["m1"] == "Healthy", "nobody knows what healthy is"

        await kinds.client.create(CUSTOMIZATIONS, customization(**SCRIPTS))
        await kinds.fleet.run(5)
        assert (await kinds.binding())["spec"]["replicas"] == 4
        assert (await kinds.in_member("m1"))["spec"]["replicas"] == 2
        assert (await kinds.health())["m1"] == "Unhealthy"
        assert (await kinds.client.get(WORKLOADS, "app", "default"))["status"] == {"ready": 1}

        always = "function InterpretHealth(obj) return true end"
        changed = {"spec": {"customizations": {"healthInterpretation": {"luaScript": always}}}}
        await kinds.client.patch(CUSTOMIZATIONS, "workload", "", changed)
        await kinds.fleet.run(5)
        assert (await kinds.health())["m1"] == "Healthy"

        await kinds.client.delete(CUSTOMIZATIONS, "workload")
        await kinds.fleet.run(5)
        assert "replicas" not in (await kinds.binding())["spec"]

    played(tmp_path, scenario)


def test_a_script_that_fails_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    async def scenario(kinds: CustomKinds) -> None:
        await kinds.client.create(CUSTOMIZATIONS, customization(**SCRIPTS))
        await kinds.propagate(workload(replicas=4))
        broken = {field: {"luaScript": f"function {name}() error('broken') end"} for field, name in _FUNCTIONS.items()}
        await kinds.client.patch(CUSTOMIZATIONS, "workload", "", {"spec": {"customizations": broken}})
        await kinds.client.patch(WORKLOADS, "app", "default", {"spec": {"replicas": 8}})
        await kinds.fleet.run(5)
        assert "broken" in (await kinds.reasons())["GetReplicasFailed"]
        assert (await kinds.in_member("m1"))["spec"]["replicas"] == 2, "the copy stays as it was"
        await kinds.client.delete(CUSTOMIZATIONS, "workload")
        await kinds.client.create(CUSTOMIZATIONS, customization(**SCRIPTS))
        await kinds.fleet.run(30)
        assert (await kinds.in_member("m1"))["spec"]["replicas"] == 4

    played(tmp_path, scenario)


_FUNCTIONS = {
    "replicaResource": "GetReplicas",
    "replicaRevision": "ReviseReplica",
    "statusReflection": "ReflectStatus",
    "healthInterpretation": "InterpretHealth",
    "statusAggregation": "AggregateStatus",
}
