"""karmadactl get as people use it: a Deployment that was propagated to two of three members, all as processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from karmada.kube.objects.gvrs import DEPLOYMENTS
from tests.e2e.propagating import SERVICES, Propagation, deployment, policy, selector
from tests.support.eventually import LIMIT
from tests.support.objects import kube_object
from tests.support.programs import Result

pytestmark = pytest.mark.e2e

SHOP = deployment("shop", 2)
SERVICE = kube_object(
    "v1", "Service", "shop", labels={"app": "shop"}, spec={"selector": {"app": "shop"}, "ports": [{"port": 80}]}
)
_CELLS = re.compile(r" {2,}")


@pytest.fixture(scope="module")
def fleet(three_members: Propagation) -> Iterator[Propagation]:
    """`shop` is in member1 and member2."""
    shop = policy("shop", [selector(SHOP), selector(SERVICE)], ["member1", "member2"])
    three_members.apply(SHOP, SERVICE, shop)
    for kind in ("Deployment", "Service"):
        three_members.until_bound(kind, "shop", "member1", "member2")

    def ready(obj: dict[str, object]) -> bool:
        status = obj.get("status")
        return isinstance(status, dict) and status.get("readyReplicas") == 2

    three_members.until_everywhere(DEPLOYMENTS, "shop", ready, "member1", "member2")
    yield three_members
    three_members.delete(SHOP, SERVICE, shop)
    for member in ("member1", "member2"):
        three_members.members[member].until_gone(DEPLOYMENTS, "shop")
        three_members.members[member].until_gone(SERVICES, "shop")


def cells(result: Result) -> list[list[str]]:
    return [_CELLS.split(line.strip()) for line in result.out.splitlines()]


def test_pods_are_shown_with_their_clusters(fleet: Propagation) -> None:
    header, *rows = cells(fleet.ctl("get", "pods", "-l", "app=shop"))
    assert header == ["NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [(row[1], row[2], row[3]) for row in rows] == [
        ("member1", "1/1", "Running"),
        ("member1", "1/1", "Running"),
        ("member2", "1/1", "Running"),
        ("member2", "1/1", "Running"),
    ]


def test_the_control_plane_and_its_members_share_a_table(fleet: Propagation) -> None:
    header, *rows = cells(fleet.ctl("get", "deployment", "shop"))
    assert header == ["NAME", "CLUSTER", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "ADOPTION"]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("shop", "Karmada", "-"),
        ("shop", "member1", "Y"),
        ("shop", "member2", "Y"),
    ]
    header, *rows = cells(fleet.ctl("get", "svc", "shop", "-C", "member1,member2"))
    assert header == ["NAME", "CLUSTER", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE", "ADOPTION"]
    assert [row[-1] for row in rows] == ["Y", "Y"]


def test_members_look_as_kubectl_shows_them(fleet: Propagation) -> None:
    """Apart from the two columns more."""
    output = fleet.sims.kubectl("member1")("get", "pods", "-l", "app=shop", "-o", "wide", "--no-headers")
    ours = fleet.ctl("get", "pods", "-l", "app=shop", "-o", "wide", "--no-headers", "-C", "member1")
    without = [[*row[:1], *row[2:-1]] for row in cells(ours)]
    age = 4
    assert [row[:age] + row[age + 1 :] for row in without] == [row[:age] + row[age + 1 :] for row in cells(output)]
    assert {row[1] for row in cells(ours)} == {"member1"}


def test_flags_may_stand_before_the_command(fleet: Propagation) -> None:
    kubeconfig = str(fleet.plane.kubeconfig)
    output = fleet.ctl(f"--kubeconfig={kubeconfig}", "--namespace=default", "get", "deploy", "shop", "-o", "name")
    assert output.out == "deployment.apps/shop\n"


def test_a_dead_member_is_named_and_the_rest_is_shown(fleet: Propagation) -> None:
    fleet.sims.ctl("fail", "member3", "down")
    try:
        output = fleet.ctl("get", "deploy", "shop", check=False)
    finally:
        fleet.sims.ctl("heal", "member3")
    assert output.code == 1
    assert [row[1] for row in cells(output)] == ["CLUSTER", "Karmada", "member1", "member2"]
    assert output.err.startswith("error: cluster(member3): ")
    assert len(output.err.splitlines()) == 1
    fleet.until_ready("member3")


def test_a_missing_server_is_reported_in_one_line(fleet: Propagation) -> None:
    config = fleet.sims.home / "nowhere.config"
    config.write_text(fleet.plane.kubeconfig.read_text().replace(f":{fleet.plane.port}", ":1"))
    output = fleet.ctl("--kubeconfig", str(config), "get", "pods", check=False)
    assert (output.code, output.out) == (1, "")
    assert (
        output.err == "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"
    )


def test_a_watch_goes_on_with_what_changes_until_it_is_interrupted(fleet: Propagation) -> None:
    words = ["get", "deploy", "shop", "--watch", "--output-watch-events"]
    process = fleet.ctl.start(*words, bufsize=1)
    assert process.stdout is not None
    try:
        first = [process.stdout.readline().split() for _ in range(4)]
        assert first[0] == ["EVENT", "NAME", "CLUSTER", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "ADOPTION"]
        assert [(row[0], row[2], row[-1]) for row in first[1:]] == [
            ("ADDED", "Karmada", "N"),
            ("ADDED", "member1", "Y"),
            ("ADDED", "member2", "Y"),
        ]
        fleet.kubectl("scale", "deployment/shop", "--replicas=3")
        seen: set[tuple[str, str]] = set()
        while seen < {("member1", "3/3"), ("member2", "3/3")}:
            event, _, cluster, ready, *_ = process.stdout.readline().split()
            assert event == "MODIFIED"
            seen.add((cluster, ready))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
    assert process.returncode == 1


def test_nothing_is_imported_that_a_table_does_not_need(fleet: Propagation) -> None:
    """The import of an HTTP library alone takes as long as everything else together."""
    command = [sys.executable, "-X", "importtime", "-m", "karmada.cli.karmadactl", "get", "pods"]
    env = {**os.environ, "KUBECONFIG": str(fleet.plane.kubeconfig)}
    output = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    imported = {
        line.rpartition("|")[2].strip() for line in output.stderr.splitlines() if line.startswith("import time:")
    }
    assert not imported & {"aiohttp", "http.client", "msgspec", "karmada.api.cluster", "karmada.kube.server.app"}
    assert len(imported) < 400, "in a blink"
    assert "shop-" in output.stdout
