"""The life of a pod whose containers are run by a runtime: what is observed takes the place of timers."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.kube.sim.behaviours import parse_outcome
from karmada.kube.sim.kubelet.podlifecycle import KILL_SECONDS
from karmada.kube.sim.kubelet.run import NEVER
from karmada.kube.sim.kubelet.runtime import Observed
from tests.kube.sim.pod_steps import PROBED, Life, pod_of


def run_by_a_runtime(**spec: Any) -> Life:
    life = Life(pod_of(PROBED, **spec))
    life.observed = {"c": Observed(0)}
    return life.until(60)


def test_the_readiness_of_a_container_that_runs_is_observed() -> None:
    life = run_by_a_runtime()
    assert "running" in life.container()["state"]
    assert not life.container()["ready"]
    life.observed = {"c": Observed(0, started=True, ready=True)}
    assert life.until(61).container()["ready"]
    life.observed = {"c": Observed(0, started=True, ready=False)}
    assert not life.until(62).container()["ready"]
    assert life.run.due == NEVER


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_container_that_runs_ends_when_its_process_does(policy: str) -> None:
    life = run_by_a_runtime(restartPolicy=policy)
    assert "running" in life.until(10_000).container()["state"]
    life.observed = {"c": Observed(0, 3, message="why")}
    life.until(10_000.0)
    if policy == "Never":
        ended = life.container()["state"]["terminated"]
    else:
        life.until(10_001)
        assert life.container()["restartCount"] == 1
        ended = life.container()["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "why")


def test_what_was_observed_of_an_earlier_run_does_not_end_a_later_one() -> None:
    life = run_by_a_runtime()
    life.observed = {"c": Observed(0, 1)}
    life.until(70)
    assert life.container()["restartCount"] == 1
    assert "running" in life.container()["state"]


def test_a_deleted_pod_stays_until_its_processes_have_ended_and_reports_how() -> None:
    life = run_by_a_runtime()
    life.delete(grace=30)
    life.until(80)
    assert not life.run.stopped
    assert life.reasons().count("Killing") == 1
    life.observed = {"c": Observed(0, 143)}
    life.until(80.5)
    assert life.run.stopped
    assert life.container()["state"]["terminated"]["exitCode"] == 143


def test_a_process_that_cannot_be_ended_does_not_keep_its_pod_forever() -> None:
    life = run_by_a_runtime()
    life.delete(grace=30)
    assert not life.until(60 + 30 + KILL_SECONDS - 1).run.stopped
    assert life.until(60 + 30 + KILL_SECONDS + 1).run.stopped


def test_an_outcome_prescribes_what_is_otherwise_observed() -> None:
    life = run_by_a_runtime()
    life.observed = {"c": Observed(0, started=True, ready=True)}
    life.outcome = parse_outcome("never-ready")
    assert not life.until(61).container()["ready"]
    life.outcome = parse_outcome("run-for 5s exit 9")
    assert life.until(62).container()["lastState"]["terminated"]["exitCode"] == 9
