"""A whole simulated cluster: every Kubernetes version runs a Deployment, a restart disturbs nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import DEPLOYMENTS, JOBS, NAMESPACES, NODES, PODS, SERVICES, SLICES, STATEFUL_SETS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.faults import kinds
from karmada.kube.sim.profile import INSTANT, VERSIONS, NodePool, Profile
from tests.kube.sim.whole_cluster import SMALL, Whole, deployment, fetch, whole_cluster
from tests.support.cases import cases
from tests.support.eventually import eventually

EVERYTHING = Profile("everything", latencies=INSTANT, pools=(NodePool(count=3, zones=("a", "b")),), seed=7)
WATCHED = [
    PODS,
    NODES,
    SERVICES,
    STATEFUL_SETS,
    JOBS,
    SLICES,
    NAMESPACES,
    GVR("", "v1", "endpoints"),
    GVR("", "v1", "persistentvolumeclaims"),
    GVR("", "v1", "persistentvolumes"),
    GVR("", "v1", "serviceaccounts"),
    DEPLOYMENTS,
    GVR("apps", "v1", "replicasets"),
    GVR("apps", "v1", "controllerrevisions"),
    GVR("storage.k8s.io", "v1", "storageclasses"),
]


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_runs_a_deployment_behind_a_service(tmp_path: Path, version: str) -> None:
    async with whole_cluster(tmp_path, msgspec.structs.replace(SMALL, version=version)) as whole:
        emitted = msgspec.json.decode((await fetch(whole.admin, "/version")).body)
        assert emitted["gitVersion"] == f"v{version}.0"
        assert {
            node["status"]["nodeInfo"]["kubeletVersion"] for node in whole.sim.context.informers.of(NODES).list()
        } == {f"v{version}.0"}
        await whole.admin.create(SERVICES, service("web"))
        await whole.deploy(3)
        await eventually(lambda: len(endpoints_of(whole, "web")) == 3)
        await whole.admin.delete(DEPLOYMENTS, "web", "default")
        await eventually(lambda: not whole.pods() and not endpoints_of(whole, "web"))


def service(name: str) -> Obj:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def endpoints_of(whole: Whole, name: str) -> list[str]:
    slices = [s for s in whole.sim.context.informers.of(SLICES).list("default") if s["metadata"]["labels"].get(
        "kubernetes.io/service-name") == name]  # fmt: skip
    ready = [e for s in slices for e in s.get("endpoints") or () if e["conditions"].get("ready")]
    return [address for endpoint in ready for address in endpoint["addresses"]]


async def create_workloads(whole: Whole) -> None:
    """Workloads of several kinds, all at rest."""
    await whole.admin.create(SERVICES, service("web"))
    await whole.deploy(4)
    template = deployment("db", 1)["spec"]["template"]
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    stateful: Obj = {
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "serviceName": "db",
            "replicas": 2,
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            "volumeClaimTemplates": [claim],
        },
    }
    await whole.admin.create(STATEFUL_SETS, stateful)
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}
    await whole.admin.create(
        JOBS, {"metadata": {"name": "once", "namespace": "default"}, "spec": {"template": {"spec": pod}}}
    )
    await eventually(lambda: done(whole), show=whole.states)


def done(whole: Whole) -> bool:
    informers = whole.sim.context.informers
    [stateful] = informers.of(STATEFUL_SETS).list("default")
    [job] = informers.of(JOBS).list("default")
    [dns] = informers.of(DEPLOYMENTS).list("kube-system")
    return (
        stateful["status"].get("readyReplicas") == 2
        and job["status"].get("succeeded") == 1
        and dns["status"].get("readyReplicas") == 2
        and len(endpoints_of(whole, "web")) == 4
    )


async def versions(whole: Whole) -> dict[str, str]:
    """resourceVersions of everything that matters."""
    found = {}
    for gvr in WATCHED:
        for obj in (await whole.admin.list(gvr))["items"]:
            meta = obj["metadata"]
            found[f"{gvr.resource} {meta.get('namespace', '')}/{meta['name']}"] = meta["resourceVersion"]
    return found


async def at_rest(whole: Whole) -> dict[str, str]:
    """The versions once no controller has anything to do and nothing changes any more."""
    before = await versions(whole)
    while True:
        await asyncio.sleep(0.1)
        idle = all(controller.queue.idle for controller in whole.sim.manager.controllers.values())
        now = await versions(whole)
        if idle and now == before:
            return now
        before = now


async def test_a_restart_finds_everything_as_it_was_and_changes_nothing(tmp_path: Path) -> None:
    async with whole_cluster(tmp_path, EVERYTHING, in_memory=False) as whole:
        await create_workloads(whole)
        before = await at_rest(whole)
        port, kubeconfig = whole.sim.server.port, whole.sim.kubeconfig.read_bytes()
        identity = (await whole.admin.get(NAMESPACES, "kube-system"))["metadata"]["uid"]
    async with whole_cluster(tmp_path, EVERYTHING, in_memory=False, port=port) as whole:
        assert whole.sim.server.port == port
        assert whole.sim.kubeconfig.read_bytes() == kubeconfig
        assert (await whole.admin.get(NAMESPACES, "kube-system"))["metadata"]["uid"] == identity
        assert await at_rest(whole) == before
        await whole.deploy(2, name="new")


async def run_pod(whole: Whole, name: str, *command: str, **annotations: str) -> None:
    pod: Obj = {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "restartPolicy": "Always" if annotations else "Never",
            "containers": [{"name": "main", "image": "busybox", "command": list(command) or None}],
        },
    }
    await whole.admin.create(PODS, pod)


def container(whole: Whole, name: str) -> Obj:
    [pod] = [pod for pod in whole.pods() if pod["metadata"]["name"] == name]
    found: list[Obj] = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return found[0]


async def test_what_pods_were_about_to_do_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with whole_cluster(tmp_path, in_memory=False) as whole:
        await run_pod(whole, "sleeper", "sleep", "3600")
        await run_pod(whole, "crasher", **{"sim.io/behavior": "crash-loop"})
        await whole.sim.faults.inject(kinds.Clock(rate=50))
        waiting = {"reason": "CrashLoopBackOff"}
        await eventually(
            lambda: (
                container(whole, "crasher").get("restartCount") == 2
                and waiting.items() <= container(whole, "crasher")["state"].get("waiting", {}).items()
            ),
            show=lambda: container(whole, "crasher"),
        )
        started = container(whole, "sleeper")["state"]["running"]["startedAt"]
    async with whole_cluster(tmp_path, in_memory=False) as whole:
        assert container(whole, "crasher")["restartCount"] == 2
        assert container(whole, "sleeper")["state"]["running"]["startedAt"] == started
        await whole.sim.faults.inject(kinds.Clock(skip=400))
        await eventually(lambda: container(whole, "crasher")["restartCount"] == 3)
        assert "running" in container(whole, "sleeper")["state"]
        await whole.sim.faults.inject(kinds.Clock(skip=3600))
        await eventually(lambda: container(whole, "sleeper")["state"].get("terminated"))
        assert container(whole, "sleeper")["state"]["terminated"]["exitCode"] == 0
        assert container(whole, "sleeper")["restartCount"] == 0


async def test_the_same_name_and_seed_make_the_same_cluster_and_another_seed_another(tmp_path: Path) -> None:
    async def identity(folder: str, profile: Profile) -> tuple[str, list[Any]]:
        async with whole_cluster(tmp_path / folder, profile) as whole:
            nodes = sorted(whole.sim.context.informers.of(NODES).list(), key=lambda node: str(node["metadata"]["name"]))
            facts = [(n["metadata"]["name"], n["spec"]["podCIDR"], n["metadata"]["labels"]) for n in nodes]
            return (await whole.admin.get(NAMESPACES, "kube-system"))["metadata"]["uid"], facts

    first, again = await identity("a", EVERYTHING), await identity("b", EVERYTHING)
    other = await identity("c", msgspec.structs.replace(EVERYTHING, seed=8))
    assert first == again
    assert other[0] != first[0]
    assert other[1] == first[1]


async def test_kinds_that_the_profile_leaves_out_are_not_served(tmp_path: Path) -> None:
    async with whole_cluster(
        tmp_path, msgspec.structs.replace(SMALL, without=("policy/v1", "cronjobs.batch"))
    ) as whole:
        with pytest.raises(NotFound):
            await whole.admin.list(GVR("policy", "v1", "poddisruptionbudgets"))
        with pytest.raises(NotFound):
            await whole.admin.list(GVR("batch", "v1", "cronjobs"))
        await whole.admin.list(JOBS)


async def test_without_metrics_there_is_no_metrics_api(tmp_path: Path) -> None:
    async with whole_cluster(tmp_path, msgspec.structs.replace(SMALL, metrics=False)) as whole:
        with pytest.raises(ApiError):
            await whole.admin.raw("GET", "/apis/metrics.k8s.io/v1beta1/nodes")


@cases(
    ({"pools": [{"cpu": "lots"}]}, 'cpu "lots" is not a quantity'),
    ({"pools": [{"count": -1}]}, "Expected `int` >= 0"),
    ({"pools": [{"name": "Big Ones"}]}, 'pool name "Big Ones"'),
    ({"pod_cidr": "10.0.0.1/8"}, "pod_cidr: "),
    ({"version": "1.12"}, 'version "1.12" is not from 1.27 to 1.37'),
    ({"colour": "red"}, "unknown field `colour`"),
    ({"latencies": {"pull": {"low": "fast"}}}, "Expected `float`"),
)
def test_a_profile_that_makes_no_sense_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"name": "x", **settings}, Profile)
    assert said in str(caught.value)
