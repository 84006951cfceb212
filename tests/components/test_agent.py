"""An agent: the same work as for members in mode Push, with its own rights and for its own cluster only."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.components.agent import lease_of
from karmada.joining.join import JoinError, Joining
from karmada.kube.objects import meta
from karmada.kube.objects.errors import Forbidden, NotFound
from karmada.kube.objects.gvrs import (
    ACCOUNTS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    SECRETS,
)
from karmada.kube.objects.types import Obj
from tests.support.agents import PullFleet, agent_config, grant, pull_fleet
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fleet import condition, config_map, deployment
from tests.support.running import unhurried


async def test_an_agent_propagates_corrects_drift_reports_and_deletes(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1") as found:
        member = found.members["m1"]
        await found.fleet.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
        applied = await member.until(DEPLOYMENTS, "web")
        work = await found.fleet.until_work("m1", deployment(), lambda w: condition(w, "Applied") == "True")

        changed = {**applied, "spec": {**applied["spec"], "replicas": 7}}
        await member.client.update(DEPLOYMENTS, changed)
        corrected = await member.until(DEPLOYMENTS, "web", lambda obj: obj["spec"]["replicas"] == 2)

        status = {"replicas": 2, "readyReplicas": 2, "observedGeneration": meta.generation(corrected)}
        await member.client.update_status(DEPLOYMENTS, {**corrected, "status": status})
        await found.fleet.until_work("m1", deployment(), lambda w: "readyReplicas" in str(w.get("status")))

        await found.client.delete(Work.gvr, meta.name(work), meta.namespace(work))
        await member.until_gone(DEPLOYMENTS, "web")
        await eventually(lambda: _work_is_another(found, meta.uid(work)))


async def test_templates_have_the_events_of_clusters_with_agents(tmp_path: Path) -> None:
    """Written by the control plane: agents have no rights in the namespaces of templates."""

    async def events_about(found: PullFleet, reason: str) -> list[Obj]:
        listed = (await found.client.list_all(EVENTS, "default")).items
        return [event for event in listed if event["reason"] == reason]

    async with pull_fleet(tmp_path, "m1") as found:
        await found.fleet.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
        [event] = await eventually(lambda: events_about(found, "SyncSucceed"))
        assert event["message"] == "Successfully applied resource(default/web) to cluster m1"
        assert event["source"]["component"] == "execution-controller"
        assert event["involvedObject"]["kind"] == "Deployment"

        await found.members["m1"].client.create(CONFIG_MAPS, config_map())
        await found.fleet.propagate(CONFIG_MAPS, config_map(), {"m1": 0})
        [event] = await eventually(lambda: events_about(found, "SyncFailed"))
        assert (
            "resource(default/settings) in member cluster(m1): Failed to apply all manifests (0/1)" in event["message"]
        )


async def _work_is_another(found: PullFleet, uid: str) -> bool:
    """The binding makes a new Work as soon as the old one has gone."""
    work = await found.fleet.work("m1", deployment())
    return work is None or meta.uid(work) != uid


async def test_an_agent_registers_its_cluster_with_tokens_and_a_lease(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1") as found:
        cluster = await found.until_ready("m1")
        system = await found.members["m1"].client.get(NAMESPACES, "kube-system")
        assert cluster["spec"]["syncMode"] == "Pull"
        assert cluster["spec"]["id"] == meta.uid(system)
        assert cluster["spec"]["secretRef"] == {"namespace": "karmada-cluster", "name": "m1"}
        assert cluster["spec"]["impersonatorSecretRef"] == {"namespace": "karmada-cluster", "name": "m1-impersonator"}
        for name, keys in (("m1", {"token", "caBundle"}), ("m1-impersonator", {"token"})):
            secret = await found.client.get(SECRETS, name, "karmada-cluster")
            assert set(secret["data"]) == keys
            assert [owner["uid"] for owner in meta.owner_references(secret)] == [meta.uid(cluster)]
        lease = await eventually(lambda: found.fleet.plane.get(LEASES, "m1", "karmada-cluster"))
        assert lease["spec"]["holderIdentity"] == "m1"
        assert lease["spec"]["leaseDurationSeconds"] == 40
        assert lease["metadata"]["ownerReferences"] == [
            {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": "m1", "uid": meta.uid(cluster)}
        ]


@cases(
    (("None",), set(), set()),
    (("KubeCredentials",), {"m1"}, {"karmada-m1"}),
    (("KubeImpersonator",), {"m1-impersonator"}, {"karmada-impersonator"}),
)
async def test_only_the_credentials_to_be_reported_are_made_and_reported(
    report: tuple[str, ...], secrets: set[str], accounts: set[str], tmp_path: Path
) -> None:
    async with pull_fleet(tmp_path, "m1", options={"report": report}) as found:
        reported = (await found.client.list_all(SECRETS, "karmada-cluster")).items
        assert {meta.name(secret) for secret in reported} == secrets
        member = found.members["m1"].client
        made = (await member.list_all(ACCOUNTS, "karmada-cluster")).items if secrets else []
        assert {meta.name(account) for account in made} - {"default"} == accounts
        roles = {meta.name(role) for role in (await member.list_all(CLUSTER_ROLES)).items}
        assert ("karmada-controller-manager:karmada-m1" in roles) == ("KubeCredentials" in report)
        spec = (await found.until_ready("m1"))["spec"]
        assert ("secretRef" in spec, "impersonatorSecretRef" in spec) == ("m1" in secrets, "m1-impersonator" in secrets)


async def test_a_restarted_agent_goes_on_with_its_cluster(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1") as found:
        before = await found.until_ready("m1")
        await found.agents["m1"].stop()
        await found.client.delete(SECRETS, "m1", "karmada-cluster")
        found.agents["m1"].start()
        await eventually(lambda: found.fleet.plane.get(SECRETS, "m1", "karmada-cluster"))
        await found.fleet.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
        await found.members["m1"].until(DEPLOYMENTS, "web")
        after = await found.until_ready("m1")
        assert meta.uid(after) == meta.uid(before)
        assert after["spec"] | {"taints": []} == before["spec"] | {"taints": []}


async def test_an_agent_with_other_settings_than_its_cluster_has_is_refused(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1") as found:
        agent = found.agents["m1"]
        await agent.stop()
        agent.joining = replace(agent.joining, region="elsewhere")
        agent.start()
        with pytest.raises(Forbidden, match="cannot update resource"):
            await agent.ended()


async def test_a_cluster_under_another_name_is_refused(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1") as found:
        other = replace(found.agents["m1"], joining=Joining(name="m2", api_endpoint=""), process=None, _task=None)
        await grant(found.client, "m2")
        other.plane = agent_config(found.fleet.plane.server, "m2")
        other.start()
        with pytest.raises(Forbidden, match="or the cluster name m2 has been registered"):
            await other.ended()
        with pytest.raises(NotFound):
            await found.client.get(Cluster.gvr, "m2")


async def test_another_cluster_under_the_same_name_is_refused(tmp_path: Path) -> None:
    async with pull_fleet(tmp_path, "m1", "m2", start=False) as found:
        found.agents["m1"].start()
        await found.until_ready("m1")
        impostor = found.agents["m2"]
        impostor.joining, impostor.plane = found.agents["m1"].joining, found.agents["m1"].plane
        impostor.start()
        with pytest.raises(JoinError, match="or the cluster name m1 has been registered"):
            await impostor.ended()


async def test_of_two_copies_one_works_and_the_other_takes_over(tmp_path: Path) -> None:
    election = unhurried(lease_of("m1"))
    async with pull_fleet(tmp_path, "m1", options={"election": election}) as found:
        first = found.agents["m1"]
        second = replace(first, process=None, _task=None)
        second.start()
        await eventually(lambda: second.process is not None and second.process.manager.informers.synced)
        await found.fleet.propagate(DEPLOYMENTS, deployment(), {"m1": 2})
        await found.members["m1"].until(DEPLOYMENTS, "web")
        holder = (await found.client.get(LEASES, "karmada-agent-m1", "karmada-system"))["spec"]["holderIdentity"]
        fence = await found.members["m1"].client.get(LEASES, "karmada-agent", "karmada-cluster")
        assert fence["spec"]["holderIdentity"] == holder

        await first.kill()
        await found.fleet.propagate(CONFIG_MAPS, config_map(), ["m1"])
        await found.members["m1"].until(CONFIG_MAPS, "settings")
        fence = await found.members["m1"].client.get(LEASES, "karmada-agent", "karmada-cluster")
        assert fence["spec"]["holderIdentity"] != holder
        await second.stop()


def test_an_agent_does_not_load_what_only_estimates_need() -> None:
    """It is numpy alone that would be a sixth of its memory."""
    parts = "karmada.components.agent_parts, karmada.components.assembly"
    script = f"import sys, {parts}; print(sorted({{'numpy', 'grpc'}} & sys.modules.keys()))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
