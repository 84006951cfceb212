from __future__ import annotations

import pytest

from karmada.components.parts import CONTROLLERS, check, names
from karmada.components.rows import is_enabled
from tests.support.cases import cases


@cases(
    (["*"], True, True),
    (["*"], False, False),
    (["*", "a"], False, True),
    (["*", "-a"], True, False),
    (["-a", "a"], True, False),
    (["a", "-a"], False, True),
    (["b"], True, False),
    ([], True, False),
)
def test_the_first_entry_that_names_a_controller_decides(flag: list[str], by_default: bool, on: bool) -> None:
    assert is_enabled("a", flag, by_default=by_default) is on


def test_what_writes_to_templates_by_itself_runs_only_when_it_is_named() -> None:
    off = {row.name for row in CONTROLLERS if not row.by_default}
    assert off == {"hpaScaleTargetMarker", "deploymentReplicasSyncer"}


@cases(["*"], ["*", "-execution", "-workStatus"], ["binding", "bindingStatus"], ["*", "remedy"], [])
def test_known_names_are_accepted(flag: list[str]) -> None:
    check(flag)


@cases(
    (["*", "nothing"], '"nothing" is not in the list of known controllers: agentcsrapproving, application'),
    (["-nothing"], '"-nothing" is not in the list'),
    (["detector"], '"detector" is not in the list'),
    (["*", "-workStatus"], "execution and workStatus run as one; enable both or disable both"),
    (["execution"], "execution and workStatus run as one"),
)
def test_a_flag_that_cannot_be_followed_is_refused(flag: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check(flag)


def test_every_controller_of_karmada_has_its_name() -> None:
    ours_alone = {"multiclusteringress"}
    assert len(set(names()) - ours_alone) == 27
    assert {"cluster", "clusterStatus", "workStatus", "unifiedAuth", "workloadRebalancer"} <= set(names())
