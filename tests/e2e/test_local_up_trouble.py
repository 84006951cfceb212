"""`karmadactl local-up` when things are in the way, or went wrong before."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.fleets import plane_process
from tests.e2e.local_environment import PORT, LocalEnvironment
from tests.support.eventually import LIMIT, eventually_blocking

pytestmark = pytest.mark.e2e


@pytest.fixture
def local(tmp_path: Path, kubectl_path: str) -> Iterator[LocalEnvironment]:
    with LocalEnvironment(tmp_path, kubectl_path) as local:
        yield local


def test_programs_end_with_a_start_that_is_killed_and_the_next_goes_on(local: LocalEnvironment) -> None:
    with local.foreground(*PORT, "--members", "1") as up:
        local.kubectl("create", "configmap", "note")
        pids = local.pids()
        up.kill()
        local.up()  # at once, while the others are perhaps still ending
        assert not set(local.pids().values()) & set(pids.values())
        assert local.kubectl("get", "configmap", "note", "-o", "name").out == "configmap/note\n"
        assert local.status()["healthy"]
        local.down()


@pytest.mark.parametrize("when", ["local.json", "sim/clusters/member1/cluster.json"])
def test_a_start_that_was_killed_half_way_is_finished_by_the_next(local: LocalEnvironment, when: str) -> None:
    process = local.ctl.start("local-up", *PORT, "--members", "2")
    eventually_blocking((local.folder / when).exists)
    process.kill()
    process.communicate()
    local.up()
    assert sorted(local.clusters()) == ["member1", "member2"]
    assert local.status()["healthy"]


def test_a_start_that_is_interrupted_leaves_nothing_running(local: LocalEnvironment) -> None:
    process = local.ctl.start("local-up", *PORT, "--members", "1")
    eventually_blocking((local.folder / "local.json").exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LIMIT)
    assert "Interrupted; everything is stopped" in out
    assert process.returncode == 130
    assert local.pids() == {}


def test_a_program_that_dies_takes_the_rest_along_and_its_last_words_are_shown(local: LocalEnvironment) -> None:
    with local.foreground(*PORT, "--members", "1") as up:
        os.kill(local.pids()["karmada-sim"], signal.SIGKILL)
        said = up.end()
        assert "error: karmada-sim was killed by SIGKILL; the last lines of ~/.karmada/logs/karmada-sim.log:" in said
        assert "  0 simulated clusters; kubeconfig" in said
        assert up.code == 1
    assert local.pids() == {}


def test_what_is_left_of_a_background_start_is_started_anew(local: LocalEnvironment) -> None:
    local.up(*PORT, "--members", "1")
    os.kill(local.pids()["karmada"], signal.SIGKILL)
    eventually_blocking(lambda: "karmada" not in local.pids())
    status = local.ctl("local-status", check=False)
    assert status.code == 1
    assert "! karmada does not run; its log is ~/.karmada/logs/karmada.log" in status.err
    assert "stopped processes of an earlier start" in local.up().out
    assert local.status()["healthy"]


def test_members_that_were_taken_away_come_back(local: LocalEnvironment) -> None:
    local.up(*PORT, "--members", "2")
    local.kubectl("create", "configmap", "note")
    before = local.clusters()
    local.ctl("sim", "delete", "member1")
    local.ctl("unjoin", "member2")
    assert "! member2 is not joined; karmadactl local-up joins it again" in local.ctl("local-status", check=False).err
    local.up()
    after = local.clusters()
    assert after["member1"]["metadata"]["uid"] == before["member1"]["metadata"]["uid"]
    assert after["member2"]["metadata"]["uid"] != before["member2"]["metadata"]["uid"]
    assert local.status()["healthy"]
    fewer = local.up("--members", "1")
    assert fewer.code == 0
    assert sorted(local.clusters()) == ["member1", "member2"], "taking one away is not for us"


def test_a_port_in_use_is_stepped_around_or_refused(local: LocalEnvironment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        refused = local.up("--port", str(port), check=False)
        assert refused.code == 1
        assert f"error: port {port} is in use by another program; choose another --port, or 0" in refused.err
        assert local.pids() == {}
    local.up("--port", str(port), "--members", "0")
    local.down()
    with socket.create_server(("127.0.0.1", port)):
        moved = local.up()
    assert f"port {port} is in use by another program; the control plane takes " in moved.out
    local.kubectl("get", "namespaces")


def test_a_folder_in_use_is_left_alone(local: LocalEnvironment) -> None:
    plane = plane_process(local.folder)
    plane.start()
    try:
        refused = local.up(check=False)
        assert refused.code == 1
        assert "error: ~/.karmada is in use by another control plane (process " in refused.err
        local.kubectl("--kubeconfig", str(plane.kubeconfig), "get", "namespaces")
    finally:
        plane.stop()
    local.ctl("sim", "create", "own")
    assert "stopped the simulated clusters that ran in the folder" in local.up(*PORT, "--members", "1").out
    assert local.kubectl(
        "config", "get-contexts", "-o", "name", "--kubeconfig", str(local.members_kubeconfig)
    ).lines == [
        "member1",
        "own",
    ]


def test_flags_of_the_control_plane_are_handed_on_and_wrong_ones_are_reported(local: LocalEnvironment) -> None:
    refused = local.up(*PORT, "--", "--nonsense", check=False)
    assert refused.code == 1
    assert "error: karmada ended with exit code 2; the last lines of ~/.karmada/logs/karmada.log:" in refused.err
    assert "No such option '--nonsense'" in refused.err
    assert local.pids() == {}
    local.up("--members", "0", "--", "-v", "4")
