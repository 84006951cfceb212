from __future__ import annotations

from typing import Any

from karmada.kube.objects.errors import ApiError, Conflict
from karmada.scheduler.decision import Failure, Reason, Verdict, error, no_fit, shortage, verdict
from tests.support.cases import cases

QUOTA = ApiError("requested: cpu=5, used: cpu=8, limited: cpu=10", code=403, reason="QuotaExceeded")
FORBIDDEN = ApiError("no", code=403, reason="Forbidden")
FIT = no_fit(2, ["x", "y", "x"])
FIT_TEXT = "0/2 clusters are available: 1 y, 2 x."


@cases(
    (None, [], ("True", "Success", "Binding has been scheduled successfully.", False)),
    (FIT, [], ("False", "NoClusterFit", FIT_TEXT, False)),
    (FIT, [FORBIDDEN], ("False", "NoClusterFit", f"[{FIT_TEXT}, no]", True)),
    (
        shortage(3).during("failed to scale up").during("failed to assign replicas"),
        [],
        (
            "False",
            "Unschedulable",
            "failed to assign replicas: failed to scale up: Clusters available replicas 3 are not enough to schedule.",
            True,
        ),
    ),
    (error("odd"), [], ("False", "SchedulerError", "odd", True)),
    (None, [QUOTA], ("False", "QuotaExceeded", str(QUOTA), True)),
    (None, [FORBIDDEN, QUOTA], ("False", "QuotaExceeded", str(QUOTA), True)),
    (None, [FORBIDDEN], ("False", "SchedulerError", "no", True)),
    (None, [FORBIDDEN, FORBIDDEN], ("False", "SchedulerError", "no", True)),
    (None, [FORBIDDEN, Conflict("late")], ("False", "SchedulerError", "[no, late]", True)),
)
def test_what_is_reported_of_a_run(failure: Any, writes: Any, expected: Any) -> None:
    assert verdict(failure, writes) == Verdict(*expected)


def test_a_failure_reads_as_its_text() -> None:
    assert str(Failure(Reason.SCHEDULER_ERROR, "odd")) == "odd"
