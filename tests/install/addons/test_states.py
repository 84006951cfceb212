"""When an addon is enabled, disabled or unhealthy, and how a list of them looks."""

from __future__ import annotations

from karmada.install.addons.states import state, table
from karmada.kube.objects.types import Obj
from tests.support.cases import cases


def deployment(wanted: int, ready: int, available: int) -> Obj:
    return {"spec": {"replicas": wanted}, "status": {"readyReplicas": ready, "availableReplicas": available}}


def api(status: str) -> Obj:
    return {"status": {"conditions": [{"type": "Available", "status": status}]}}


RUNS, SERVED = deployment(2, 2, 2), api("True")


@cases(
    (RUNS, [], "enabled"),
    (RUNS, [SERVED, SERVED], "enabled"),
    (None, [], "disabled"),
    (None, [SERVED], "disabled"),
    (RUNS, [SERVED, None], "disabled"),
    (deployment(2, 1, 2), [], "unhealthy"),
    (deployment(2, 2, 1), [SERVED], "unhealthy"),
    (deployment(2, 3, 3), [SERVED], "unhealthy"),
    ({"spec": {"replicas": 1}}, [], "unhealthy"),
    (RUNS, [SERVED, api("False")], "unhealthy"),
    (RUNS, [{}], "unhealthy"),
)
def test_a_state_follows_from_its_deployment_and_its_apis(found: Obj | None, apis: list[Obj], expected: str) -> None:
    assert state(found, apis) == expected


def test_a_list_is_a_table_in_a_frame() -> None:
    rows = [("karmada-descheduler", "enabled"), ("karmada-scheduler-estimator", "unknown")]
    assert table(rows).splitlines() == [
        "|-----------------------------|---------|",
        "|          ADDON NAME         |  STATUS |",
        "|-----------------------------|---------|",
        "| karmada-descheduler         | enabled |",
        "| karmada-scheduler-estimator | unknown |",
        "|-----------------------------|---------|",
    ]
