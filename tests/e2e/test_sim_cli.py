"""`karmadactl sim`: clusters are made, shown, scaled, broken, mended, stopped, killed and found again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.sim_fleet import SimFleet
from tests.support.cases import cases
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, Result

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[SimFleet]:
    with SimFleet(tmp_path_factory.mktemp("cli"), kubectl_path) as fleet:
        fleet.create("alpha", "beta", "--nodes", "2")
        yield fleet


def nodes(fleet: SimFleet, cluster: str) -> list[str]:
    return [line.removeprefix("node/") for line in fleet.ours(cluster)("get", "nodes", "-o", "name").lines]


# --- clusters


def test_several_clusters_run_in_one_process_and_know_nothing_of_each_other(fleet: SimFleet) -> None:
    assert list(fleet.clusters()) == ["alpha", "beta"]
    assert nodes(fleet, "alpha") == ["alpha-node-1", "alpha-node-2"]
    assert nodes(fleet, "beta") == ["beta-node-1", "beta-node-2"]
    fleet.kubectl("alpha")("create", "namespace", "only-here")
    assert fleet.ours("beta")("get", "namespace", "only-here", check=False).code != 0
    ids = {
        fleet.ours(name)("get", "ns", "kube-system", "-o", "jsonpath={.metadata.uid}").out for name in fleet.clusters()
    }
    assert len(ids) == 2


def test_the_list_shows_what_runs(fleet: SimFleet) -> None:
    header, alpha, _ = fleet.ctl("list").lines
    assert header.split() == ["NAME", "VERSION", "NODES", "PODS", "FAULTS", "SERVER"]
    assert re.fullmatch(r"alpha +v1\.36\.0 +2 +\d+ +<none> +https://127\.0\.0\.1:\d+", alpha)
    assert fleet.ctl("list", "-o", "name").lines == ["alpha", "beta"]
    assert [cluster["name"] for cluster in fleet.ctl("list", "-o", "json").json()] == ["alpha", "beta"]
    wide = fleet.ctl("list", "-o", "wide").lines
    assert wide[0].split()[-4:] == ["REGION", "ZONE", "PROVIDER", "KUBECONFIG"]
    assert wide[1].split()[-1].endswith("alpha/admin.kubeconfig")


def test_a_cluster_is_created_as_its_flags_say_and_deleted(fleet: SimFleet) -> None:
    flags = ("--nodes", "3", "--cpu", "8", "--memory", "32Gi", "--region", "eu", "--zone", "eu-a,eu-b")
    made = fleet.ctl(
        "create", "gamma", *flags, "--provider", "acme", "--labels", "tier=gold", "--kubernetes-version", "1.31"
    )
    assert re.match(r"cluster gamma created in [\d.]+ s: https://127\.0\.0\.1:\d+\n", made.out)
    kubectl = fleet.kubectl("gamma")
    assert kubectl("version", "-o", "json").json()["serverVersion"]["gitVersion"] == "v1.31.0"
    found = eventually_blocking(
        lambda: [
            n for n in fleet.ours("gamma")("get", "nodes", "-o", "json").json()["items"] if n["status"].get("capacity")
        ]
    )
    assert {node["status"]["capacity"]["cpu"] for node in found} == {"8"}
    labels = [node["metadata"]["labels"] for node in found]
    assert [label["topology.kubernetes.io/zone"] for label in labels] == ["eu-a", "eu-b", "eu-a"]
    assert {(label["topology.kubernetes.io/region"], label["tier"]) for label in labels} == {("eu", "gold")}
    assert fleet.ctl("delete", "gamma").out == "cluster gamma deleted\n"
    assert "gamma" not in fleet.clusters()
    assert not (fleet.folder / "clusters" / "gamma").exists()
    assert "gamma" not in fleet.kubeconfig.read_text()


def test_a_profile_says_everything_and_flags_have_the_last_word(fleet: SimFleet) -> None:
    profile = """
version: "1.30"
region: us
pools:
- {name: small, count: 1, cpu: "2"}
- {name: gpu, count: 2, extended: {nvidia.com/gpu: "4"}, taints: [{key: gpu, effect: NoSchedule}]}
storage_classes:
- {name: fast, default: false, binding: Immediate}
without: [policy/v1]
"""
    fleet.create("delta", "--kubernetes-version", "1.33", profile=profile)
    ours = fleet.ours("delta")
    assert fleet.clusters()["delta"]["version"] == "v1.33.0"
    assert fleet.clusters()["delta"]["region"] == "us"
    assert nodes(fleet, "delta") == ["delta-gpu-1", "delta-gpu-2", "delta-small-1"]
    eventually_blocking(
        lambda: ours("get", "node", "delta-gpu-1", "-o", r"jsonpath={.status.capacity.nvidia\.com/gpu}").out == "4"
    )
    assert ours("get", "sc", "-o", "name").lines == ["storageclass.storage.k8s.io/fast"]
    assert "doesn't have a resource type" in fleet.kubectl("delta")("get", "pdb", check=False).err
    fleet.ctl("scale", "delta", "--pool", "gpu", "--nodes", "1")
    eventually_blocking(lambda: nodes(fleet, "delta") == ["delta-gpu-1", "delta-small-1"])
    fleet.ctl("delete", "delta")


def test_nodes_are_added_and_taken_away(fleet: SimFleet) -> None:
    assert fleet.ctl("scale", "beta", "--nodes", "4").out == "cluster beta: pool node has 4 nodes\n"
    kubectl = fleet.kubectl("beta")
    kubectl("wait", "--for=condition=ready", "node", "--all", "--timeout=100s")
    eventually_blocking(lambda: len(nodes(fleet, "beta")) == 4)
    kubectl("create", "deployment", "spread", "--image=nginx", "--replicas=8")
    kubectl("rollout", "status", "deployment/spread", "--timeout=100s")
    fleet.ctl("scale", "beta", "--nodes", "2")
    eventually_blocking(lambda: len(nodes(fleet, "beta")) == 2)
    fleet.ctl("fail", "beta", "clock", "--rate", "100")  # pods of nodes that are gone are collected after a minute
    there = "jsonpath={.items[*].spec.nodeName}"
    eventually_blocking(
        lambda: set(fleet.ours("beta")("get", "pods", "-o", there).out.split()) == {"beta-node-1", "beta-node-2"}
    )
    kubectl("rollout", "status", "deployment/spread", "--timeout=100s")
    fleet.ctl("heal", "beta")
    kubectl("delete", "deployment", "spread")


# --- faults


FAULTS: list[tuple[list[str], str]] = [
    (["down"], "down"),
    (["flap", "--up", "1s", "--down", "1s"], "flap"),
    (["black-hole", "--resource", "pods", "--verb", "list"], "black-hole"),
    (["slow", "--delay", "1ms", "--jitter", "1ms", "--percent", "50"], "slow"),
    (["partition", "--how", "refuse", "--user", "^somebody$"], "partition"),
    (["errors", "--code", "503", "--retry-after", "1", "--agent", "nobody"], "errors"),
    (["read-only"], "read-only"),
    (["watches", "--how", "stall"], "watches"),
    (["unhealthy", "--page", "/livez", "--code", "503"], "unhealthy"),
    (["kind", "deployments.apps", "batch/v1"], "unavailable"),
    (["node", "alpha-node-1"], "node"),
    (["node", "--pool", "node"], "node"),
    (["image-pull", "nginx"], "pods"),
    (["pods", "run-for 5s exit 1", "-n", "default", "-l", "app=web"], "pods"),
    (["pressure", "alpha-node-1", "--of", "DiskPressure"], "pressure"),
    (["pause", "scheduler"], "pause"),
    (["clock", "--rate", "2", "--skip", "5s"], "clock"),
]


@pytest.mark.parametrize(("fault", "name"), FAULTS, ids=[" ".join(fault) for fault, _ in FAULTS])
def test_every_fault_is_let_in_shown_and_healed(fleet: SimFleet, fault: list[str], name: str) -> None:
    assert fleet.ctl("fail", "alpha", *fault).out == f'cluster alpha: fault "{name}"\n'
    assert list(fleet.clusters()["alpha"]["faults"]) == [name]
    assert fleet.ctl("heal", "alpha").out == f"cluster alpha: healed {name}\n"
    assert fleet.kubectl("alpha")("get", "--raw", "/readyz").out == "ok"


def test_a_fault_has_a_name_and_an_end_if_it_is_given_them(fleet: SimFleet) -> None:
    output = fleet.ctl("fail", "alpha", "down", "--for", "200ms", "--as", "outage").out
    assert output == 'cluster alpha: fault "outage" for 0.2 s\n'
    eventually_blocking(lambda: not fleet.clusters()["alpha"]["faults"])
    assert fleet.ctl("fail", "alpha", "unhealthy", "--as", "sick").out == 'cluster alpha: fault "sick"\n'
    fleet.ctl("fail", "alpha", "slow", "--delay", "0s")
    assert fleet.ctl("heal", "alpha", "sick").out == "cluster alpha: healed sick\n"
    assert list(fleet.clusters()["alpha"]["faults"]) == ["slow"]
    fleet.ctl("heal", "alpha")
    assert fleet.ctl("heal", "alpha").out == "cluster alpha: healed nothing, there was no fault\n"


def test_kubectl_notices_that_a_cluster_is_down_and_the_other_is_not(fleet: SimFleet) -> None:
    fleet.ctl("fail", "alpha", "down")
    refused = fleet.kubectl("alpha")("get", "nodes", check=False)
    assert "connection refused" in refused.err.lower() or "was refused" in refused.err
    assert len(nodes(fleet, "beta")) == 2
    fleet.ctl("heal", "alpha")
    assert len(nodes(fleet, "alpha")) == 2


def test_a_control_plane_is_cut_off_while_people_work_on(fleet: SimFleet, tmp_path: Path) -> None:
    admin = fleet.kubectl("alpha", "karmada-cluster")
    admin("create", "namespace", "karmada-cluster")
    admin("create", "serviceaccount", "karmada-alpha")
    admin("create", "clusterrolebinding", "karmada", "--clusterrole=cluster-admin",
          "--serviceaccount=karmada-cluster:karmada-alpha")  # fmt: skip
    config = yaml.safe_load((fleet.folder / "clusters/alpha/admin.kubeconfig").read_text())
    config["users"][0]["user"] = {"token": admin("create", "token", "karmada-alpha").out.strip()}
    (tmp_path / "plane.kubeconfig").write_text(yaml.safe_dump(config))
    plane = Program([*admin._command, "--request-timeout", "500ms"], fleet.home, tmp_path / "plane.kubeconfig")
    look = ("get", "--raw", "/api/v1/nodes")
    assert len(plane(*look).json()["items"]) == 2
    fleet.ctl("fail", "alpha", "partition")
    cut = plane(*look, check=False)
    assert cut.code != 0
    assert "Timeout" in cut.err or "deadline exceeded" in cut.err
    assert len(nodes(fleet, "alpha")) == 2
    fleet.ctl("heal", "alpha")
    assert len(plane(*look).json()["items"]) == 2


# --- errors


def refused(result: Result, text: str) -> None:
    """The first line says it; after that there may only be where to read how to use the command."""
    assert result.code != 0
    assert not result.out
    error, *hint = result.err.strip().splitlines()
    assert not hint or hint[0].startswith("See 'karmadactl sim "), result.err
    assert len(hint) <= 1
    assert error.lower().startswith("error: "), result.err
    assert text in error


@cases(
    (["fail", "omega", "down"], 'no simulated cluster "omega" (known: alpha, beta)'),
    (["heal", "omega"], 'no simulated cluster "omega" (known: alpha, beta)'),
    (["scale", "omega", "--nodes", "1"], 'no simulated cluster "omega" (known: alpha, beta)'),
    (["delete", "omega"], 'no simulated cluster "omega" (known: alpha, beta)'),
    (["load", "omega", "deploy/web", "cpu=1"], 'no simulated cluster "omega" (known: alpha, beta)'),
    (["delete"], "give the names of clusters, or --all"),
    (["create", "alpha"], 'cluster "alpha" already exists'),
    (["create", "Not_A_Name"], 'cluster name "Not_A_Name"'),
    (["create", "x", "--nodes", "many"], 'parsing "many": invalid syntax'),
    (["create", "x", "--cpu", "lots"], 'cpu "lots" is not a quantity such as 4 or 16Gi'),
    (["create", "x", "--kubernetes-version", "1.9"], '"1.9" is not a version from 1.27 to 1.37'),
    (["create", "x", "--labels", "oops"], '"oops" is not of the form key=value,key=value'),
    (["create", "x", "--colour", "red"], "unknown flag: --colour"),
    (["create", "x", "--nodes", "1000"], "give the cluster a larger pod_cidr"),
    (["scale", "alpha", "--pool", "gpu", "--nodes", "1"], 'cluster "alpha" has no pool "gpu" (has: node)'),
    (["fail", "alpha", "explode"], 'unknown command "explode"'),
    (["fail", "alpha", "node"], "name nodes, --pool or --zone"),
    (
        ["fail", "alpha", "node", "beta-node-1"],
        'no simulated node "beta-node-1" (known: alpha-node-1, alpha-node-2)',
    ),
    (["fail", "alpha", "pause", "coffee"], 'no component "coffee" (known: '),
    (["fail", "alpha", "pods", "dance"], 'unknown behaviour "dance" (known: ok, '),
    (["fail", "alpha", "slow", "--delay", "soon"], '"soon" is not a duration such as 30s or 1m30s'),
    (["fail", "alpha", "slow", "--user", "("], "users is not a regular expression"),
    (["fail", "alpha", "image-pull", "("], "image is not a regular expression"),
    (["heal", "alpha", "nothing"], 'fault "nothing" not found'),
    (["load", "alpha", "web", "cpu=1"], '"web" is not of the form deployment/web'),
    (["load", "alpha", "deploy/web"], "give a load, such as cpu=250m, or --clear"),
    (["load", "alpha", "deploy/web", "cpu"], '"cpu" is not of the form cpu=250m'),
    (["load", "alpha", "deploy/web", "cpu=lots"], "quantities must match"),
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused_in_one_line(arguments: list[str], text: str, fleet: SimFleet) -> None:
    refused(fleet.ctl(*arguments, check=False), text)
    assert list(fleet.clusters()) == ["alpha", "beta"]
    assert not fleet.clusters()["alpha"]["faults"]


@cases(
    ("colour: red", "unknown field `colour`"),
    ("- a list", "not a mapping of settings"),
    ("version: 1.30", "needs quotes"),
    ("pools: [{count: -1}]", "Expected `int` >= 0"),
    ("a: b: c", "profile.yaml: "),
)
def test_a_profile_that_makes_no_sense_is_refused_in_one_line(
    profile: str, text: str, fleet: SimFleet, tmp_path: Path
) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(profile)
    refused(fleet.ctl("create", "x", "--profile", str(path), check=False), text)


@cases(["list"], ["stop"], ["fail", "x", "down"], ["delete", "x"], ["scale", "x", "--nodes", "1"])
def test_without_a_fleet_there_is_nothing_to_order(arguments: list[str], tmp_path: Path) -> None:
    fleet = SimFleet(tmp_path)
    refused(fleet.ctl(*arguments, check=False), f"no simulated clusters run in {fleet.folder}")
    assert not fleet.folder.exists()


# --- ends and beginnings; these come last, since they disturb the others


def state(fleet: SimFleet) -> dict[str, Any]:
    """All that must be the same after a restart."""
    ours = fleet.ours("alpha")
    pods = ours("get", "pods", "-A", "-o", "json").json()["items"]
    restarts = {c["name"]: c["restartCount"] for pod in pods for c in pod["status"]["containerStatuses"]}
    return {
        "pods": {pod["metadata"]["uid"]: (pod["status"]["phase"], pod["metadata"]["resourceVersion"]) for pod in pods},
        "restarts": restarts,
        "servers": {name: cluster["server"] for name, cluster in fleet.clusters().items()},
        "kubeconfig": fleet.kubeconfig.read_bytes(),
        "id": ours("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}").out,
        "nodes": nodes(fleet, "alpha"),
    }


@cases("stop", "kill -9")
def test_a_fleet_that_ended_is_found_as_it_was(end: str, fleet: SimFleet) -> None:
    kubectl = fleet.kubectl("alpha")
    kubectl("create", "deployment", f"app-{end[0]}", "--image=nginx", "--replicas=4")
    kubectl("rollout", "status", f"deployment/app-{end[0]}", "--timeout=100s")
    fleet.ctl("fail", "alpha", "unhealthy")
    before = eventually_blocking(lambda: _settled(fleet))
    pid = fleet.pid
    if end == "stop":
        assert fleet.ctl("stop").out == "stopped\n"
        refused(fleet.ctl("list", check=False), "no simulated clusters run in")
    else:
        fleet.kill()
        refused(fleet.ctl("list", check=False), "do not respond")
    assert fleet.ctl("start").out == f"2 clusters run; kubeconfig: {fleet.kubeconfig}\n"
    assert fleet.pid != pid
    assert _settled(fleet) == before
    assert not fleet.clusters()["alpha"]["faults"]
    kubectl("rollout", "restart", f"deployment/app-{end[0]}")
    kubectl("rollout", "status", f"deployment/app-{end[0]}", "--timeout=100s")


def _settled(fleet: SimFleet) -> dict[str, Any] | None:
    """The state, if nothing is on its way."""
    first = state(fleet)
    return first if state(fleet) == first and all(phase == "Running" for phase, _ in first["pods"].values()) else None


def test_start_and_create_leave_a_running_fleet_alone(fleet: SimFleet) -> None:
    pid = fleet.pid
    fleet.ctl("start")
    one, two = (fleet.ctl.start("create", name) for name in ("one", "two"))
    assert [program.wait(30) for program in (one, two)] == [0, 0]
    for program in (one, two):
        program.communicate()
    assert fleet.pid == pid
    assert list(fleet.clusters()) == ["alpha", "beta", "one", "two"]
    fleet.ctl("delete", "--all")
    assert fleet.ctl("list", "-o", "json").json() == []


def test_two_who_create_at_once_share_one_process(tmp_path: Path) -> None:
    with SimFleet(tmp_path) as fleet:
        both = [fleet.ctl.start("create", name) for name in ("one", "two")]
        ended = [program.communicate(timeout=60) for program in both]
        assert [program.returncode for program in both] == [0, 0], ended
        assert list(fleet.clusters()) == ["one", "two"]
        second = Program([fleet.ctl._command[0], "-m", "karmada.components.sim"], fleet.home, fleet.kubeconfig)
        refused(second("--data-dir", str(fleet.folder), check=False), "simulated clusters already run in")
        about = json.loads((fleet.folder / "admin.json").read_text())
        assert about["pid"] == fleet.pid
