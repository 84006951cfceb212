"""The smallest propagation that can be measured: on a control plane of our own, and on one that is given."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.measuring import Order, measured
from benchmarks.members import kubeconfig
from benchmarks.objects import DEPLOYMENTS
from benchmarks.planes import connected, started_members, started_plane
from benchmarks.processes import CLIENT, CONTROL_PLANE, MEMBERS
from benchmarks.scenario import Foreign, Place
from benchmarks.scenarios.propagation.rollout import Overridden
from karmada.kube.client.kubeconfig import load_config
from tests.support import forking

_SECONDS = 60.0
_EVENTS = 15
"""Of a Deployment for two members: those on itself, its binding and its Works."""
_WRITES = 7
"""Of one: the Deployment, its binding with the decision, its Works, and the status of each binding and Work."""


@pytest.fixture(autouse=True)
def _programs_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", forking.start)


def test_a_few_deployments_are_measured_in_a_process_of_their_own(tmp_path: Path) -> None:
    order = Order(scenario="propagation.deployments", size=3, folder=str(tmp_path), seconds=_SECONDS)
    found = measured(order, tmp_path / "log", lambda _: None)
    figures, processes = found.measurement.figures, found.measurement.processes
    assert figures["Works"] == pytest.approx(6 / figures["all done"])
    assert 0 < figures["all requested"] <= figures["all done"] < found.seconds
    assert figures["events per object"] >= _EVENTS
    assert _WRITES <= figures["writes per object"] < _WRITES + 3
    assert set(processes) == {CONTROL_PLANE, MEMBERS, CLIENT}
    assert all(use.resident > 10 for use in processes.values())
    assert list(tmp_path.glob("run-*")) == []


def test_agents_are_measured_beside_the_control_plane_that_does_their_work(tmp_path: Path) -> None:
    order = Order(scenario="propagation.pull", size=3, folder=str(tmp_path), seconds=2 * _SECONDS)
    found = measured(order, tmp_path / "log", lambda _: None)
    figures, processes = found.measurement.figures, found.measurement.processes
    assert figures["Pull beside Push"] == pytest.approx(figures["Works, Pull"] / figures["Works, Push"])
    assert set(processes) == {CONTROL_PLANE, MEMBERS, CLIENT, "agent of member0", "agent of member1"}
    assert 10 < figures["agent at rest, resident"] <= figures["agent with Works, resident"]
    agents = sum(use.cpu_seconds for name, use in processes.items() if name.startswith("agent"))
    assert figures["agents, CPU per Work"] == pytest.approx(agents / 6 * 1e3)  # in ticks, perhaps none


def test_scripts_are_measured_beside_what_is_built_in(tmp_path: Path) -> None:
    order = Order(scenario="propagation.customized", size=3, folder=str(tmp_path), seconds=2 * _SECONDS)
    figures = measured(order, tmp_path / "log", lambda _: None).measurement.figures
    assert figures["scripts beside native"] == pytest.approx(figures["Works, scripts"] / figures["Works, native"])
    assert figures["control plane, CPU per Work, scripts"] > 0


async def test_a_control_plane_that_is_given_is_measured_and_cleared(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    ours = Place(tmp_path)
    with started_members(tmp_path, 2), started_plane(ours) as process:
        members = [f"{kubeconfig(tmp_path / 'members', 0)}", f"{kubeconfig(tmp_path / 'members', 1)}:member1"]
        control = str(tmp_path / "plane" / "admin.kubeconfig")
        foreign = Foreign(control, members, join=True, pids={"karmada": process.pid})
        found = await Overridden().run(3, Place(tmp_path / "run", foreign))
        assert set(found.processes) == {"karmada", CLIENT}
        assert found.figures["control plane, CPU per Work"] > 0
        without_pids = await Overridden().run(1, Place(tmp_path / "run", Foreign(control, members)))
        async with connected(load_config(control)) as client:
            assert (await client.list_all(DEPLOYMENTS)).items == []
    assert set(without_pids.processes) == {CLIENT}
    assert set(without_pids.figures) == {"Works", "all requested", "all done"}
    assert without_pids.costs.keys() == {"until all done, s"}
