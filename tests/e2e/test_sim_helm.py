"""helm on a simulated cluster: a typical web chart becomes ready, is upgraded, rolled back, scaled by load, removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.sim_fleet import SimFleet, field
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program

pytestmark = pytest.mark.e2e
CHART = str(Path(__file__).parent / "charts" / "shop")
WAIT = ("--wait", "--timeout", "60s")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[SimFleet]:
    with SimFleet(tmp_path_factory.mktemp("helm"), kubectl_path) as fleet:
        fleet.create("shops")
        yield fleet


def installed(fleet: SimFleet, namespace: str) -> tuple[Program, Program]:
    helm, kubectl = fleet.helm("shops", namespace), fleet.kubectl("shops", namespace)
    helm("install", "shop", CHART, "--create-namespace", *WAIT)
    return helm, kubectl


def test_a_chart_is_installed_upgraded_rolled_back_and_removed(fleet: SimFleet) -> None:
    helm, kubectl = installed(fleet, "life")
    assert field(kubectl, ".status.readyReplicas", "deployment", "shop") == "2"
    assert field(kubectl, ".status.phase", "pvc", "shop-uploads") == "Bound"
    address = field(kubectl, ".status.loadBalancer.ingress[0].ip", "service", "shop")
    assert address.startswith("172.18.")
    eventually_blocking(lambda: field(kubectl, ".status.disruptionsAllowed", "pdb", "shop") == "1")
    eventually_blocking(lambda: "shop.example.com" in kubectl("get", "ingress", "shop").out)

    helm("upgrade", "shop", CHART, "--set", "image=nginx:1.28,greeting=welcome", *WAIT)
    assert field(kubectl, ".spec.template.spec.containers[0].image", "deployment", "shop") == "nginx:1.28"
    images = ("pods", "--field-selector=status.phase=Running")
    eventually_blocking(
        lambda: set(field(kubectl, ".items[*].spec.containers[0].image", *images).split()) == {"nginx:1.28"}
    )
    pod = kubectl("get", "pods", "-o", "name").lines[0]
    assert kubectl("exec", pod, "--", "printenv", "greeting").out.strip() == "welcome"

    helm("rollback", "shop", "1", *WAIT)
    assert field(kubectl, ".spec.template.spec.containers[0].image", "deployment", "shop") == "nginx:1.27"
    assert field(kubectl, ".data.greeting", "configmap", "shop") == "hello"
    assert [line.split()[0] for line in helm("history", "shop").lines[1:]] == ["1", "2", "3"]

    helm("uninstall", "shop", *WAIT)
    left = "deployment,service,ingress,hpa,pdb,pvc,pods,replicasets,endpoints"
    eventually_blocking(lambda: not kubectl("get", left, "-o", "name").out)
    eventually_blocking(lambda: not kubectl("get", "pv", "-o", "name").out)


def test_an_upgrade_that_cannot_become_ready_is_taken_back(fleet: SimFleet) -> None:
    helm, kubectl = installed(fleet, "broken")
    fleet.ctl("fail", "shops", "image-pull", "nginx:9", "--as", "typo")
    failed = helm("upgrade", "shop", CHART, "--set", "image=nginx:9", "--atomic", "--timeout", "2s", check=False)
    assert failed.code != 0
    assert "timed out" in failed.err or "deadline exceeded" in failed.err
    kubectl("rollout", "status", "deployment/shop", "--timeout=100s")
    assert field(kubectl, ".spec.template.spec.containers[0].image", "deployment", "shop") == "nginx:1.27"
    fleet.ctl("heal", "shops", "typo")
    helm("uninstall", "shop")


def test_load_makes_the_autoscaler_of_a_chart_add_pods(fleet: SimFleet) -> None:
    helm, kubectl = installed(fleet, "loaded")
    fleet.ctl("load", "shops", "deployment/shop", "-n", "loaded", "total-cpu=400m")
    fleet.ctl("fail", "shops", "clock", "--rate", "100", "--as", "hurry")
    try:
        # 400m are used, 70m of each pod: six pods share it
        eventually_blocking(lambda: field(kubectl, ".status.readyReplicas", "deployment", "shop") == "6")
        assert "SuccessfulRescale" in kubectl("describe", "hpa", "shop").out
        fleet.ctl("load", "shops", "deployment/shop", "-n", "loaded", "--clear")
        fleet.ctl("load", "shops", "deployment/shop", "-n", "loaded", "total-cpu=10m")
        eventually_blocking(lambda: field(kubectl, ".spec.replicas", "deployment", "shop") == "2")
    finally:
        fleet.ctl("heal", "shops", "hurry")
    helm("uninstall", "shop")
