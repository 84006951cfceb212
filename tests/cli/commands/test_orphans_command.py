"""`karmadactl orphans`: a control plane and simulated members, with objects that a Work carries and others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
from click.testing import CliRunner

from karmada.api import well_known
from karmada.api.work import Work
from karmada.cli.karmadactl import main
from karmada.kube.objects.gvrs import CONFIG_MAPS, NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.sim.cluster import SimCluster
from tests.support.background import Background
from tests.support.kubectl_plane import Plane, plane
from tests.support.objects import kube_object
from tests.support.programs import Result


class Lab:
    """m1 has what the control plane carries and what it does not, m2 only the former, m3 does not answer."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.members = {name: plane.join(name) for name in ("m1", "m2", "m3")}
        for name in ("m1", "m2"):
            plane.create(NAMESPACES, kube_object("v1", "Namespace", well_known.execution_namespace(name)))
            self.put(name, "carried", work="carried")
            self.send(name, "carried")
        self.put("m1", "lost", work="lost")
        self.put("m1", "dropped", work="carried")
        self.put("m1", "untouched")
        self.put("m1", "copied", work="elsewhere", cluster="m2")

    def put(self, member: str, name: str, *, work: str = "", cluster: str = "") -> None:
        """Create a ConfigMap in a member: with `work`, as the control plane would have."""
        obj = config_map(name)
        if work:
            obj["metadata"]["labels"] = {well_known.MANAGED: well_known.TRUE}
            obj["metadata"]["annotations"] = {
                well_known.WORK_NAME: work,
                well_known.WORK_NAMESPACE: well_known.execution_namespace(cluster or member),
            }
        self._do(self.members[member], obj)

    def _do(self, sim: SimCluster, obj: Obj) -> None:
        self._plane.background.run(sim.server.client().create(CONFIG_MAPS, obj))

    def send(self, member: str, name: str) -> None:
        manifests = [config_map(name)]
        namespace = well_known.execution_namespace(member)
        work = kube_object(
            "work.karmada.io/v1alpha1", "Work", name, namespace, spec={"workload": {"manifests": manifests}}
        )
        self._plane.create(Work.gvr, work)

    def orphans(self, *words: str) -> Result:
        done = CliRunner().invoke(main, ["orphans", *words, "--kubeconfig", str(self._plane.server.kubeconfig)])
        return Result(done.exit_code, done.stdout, done.stderr)

    def silent(self, name: str) -> AbstractContextManager[None]:
        return self._plane.silent([self.members[name]])


def config_map(name: str) -> Obj:
    return kube_object("v1", "ConfigMap", name, "default")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Background() as background:
        yield Lab(plane(background, tmp_path_factory.mktemp("orphans"), "kubectl"))


def test_what_no_work_carries_is_listed_with_the_work_that_did(lab: Lab) -> None:
    done = lab.orphans("m1", "m2")
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["CLUSTER", "NAMESPACE", "NAME", "WORK", "AGE"]
    assert [row[:4] for row in rows[1:]] == [
        ["m1", "default", "configmap/dropped", "carried"],
        ["m1", "default", "configmap/lost", "lost"],
    ]


def test_scripts_get_json(lab: Lab) -> None:
    found = json.loads(lab.orphans("m1", "-o", "json").out)
    assert [(one["cluster"], one["name"]) for one in found] == [("m1", "configmap/dropped"), ("m1", "configmap/lost")]
    assert json.loads(lab.orphans("m2", "-o", "json").out) == []


def test_a_fleet_without_orphans_is_reported_as_such(lab: Lab) -> None:
    done = lab.orphans("m2")
    assert (done.code, done.out, done.err) == (0, "", "No orphans found\n")


def test_a_member_that_does_not_answer_hides_nothing_of_the_others(lab: Lab) -> None:
    with lab.silent("m3"):
        done = lab.orphans()
    assert done.code == 1
    assert "configmap/lost" in done.out
    assert "error: cluster(m3): " in done.err


def test_an_unknown_cluster_is_an_error(lab: Lab) -> None:
    done = lab.orphans("m9")
    assert (done.code, done.err) == (1, "error: clusters don't exist: m9\n")
