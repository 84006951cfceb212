from __future__ import annotations

from typing import Any

from karmada.admission.context import Context, Settings
from karmada.admission.cron import validate
from karmada.admission.schedules import is_schedule
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object

PATH = "validate-cronfederatedhpa"
FEDERATED = {"apiVersion": "autoscaling.karmada.io/v1alpha1", "kind": "FederatedHPA", "name": "web"}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def scaling(reference: Obj, *rules: Obj) -> Obj:
    return kube_object("autoscaling.karmada.io/v1alpha1", "CronFederatedHPA", "c", "default") | {
        "spec": {"scaleTargetRef": reference, "rules": list(rules)}
    }


def rule(name: str = "r", **more: Any) -> Obj:
    return {"name": name, "schedule": "0 8 * * *", **more}


AT = "spec.rules[0]"


@cases(
    (scaling(DEPLOYMENT, rule(targetReplicas=0)), ""),
    (
        scaling({**FEDERATED, "kind": "CronFederatedHPA"}, rule(schedule="no")),
        'spec.scaleTargetRef.kind: Invalid value: "CronFederatedHPA": '
        "invalid scaleTargetRef kind: CronFederatedHPA, only support FederatedHPA",
    ),
    (
        scaling({"apiVersion": "apps/v1", "kind": "a%b", "name": ""}),
        "[spec.scaleTargetRef.kind: Invalid value: \"a%b\": may not contain '%', "
        "spec.scaleTargetRef.name: Required value]",
    ),
    (
        scaling(DEPLOYMENT, rule(targetReplicas=1), rule(targetReplicas=2)),
        'spec.rules[1].name: Duplicate value: "r"',
    ),
    (
        scaling(DEPLOYMENT, rule(schedule="at noon", targetReplicas=1)),
        f'{AT}.schedule: Invalid value: "at noon": invalid cron format',
    ),
    (
        scaling(DEPLOYMENT, rule(timeZone="Moon/Crater", targetReplicas=1)),
        f'{AT}.timeZone: Invalid value: "Moon/Crater": unknown time zone Moon/Crater',
    ),
    (scaling(DEPLOYMENT, rule(timeZone="Europe/Vienna", targetReplicas=1)), ""),
    (
        scaling(DEPLOYMENT, rule()),
        f"{AT}.targetReplicas: Invalid value: null: targetReplicas cannot be nil if you want to scale Deployment",
    ),
    (
        scaling(DEPLOYMENT, rule(targetReplicas=-1)),
        f"{AT}.targetReplicas: Invalid value: -1: targetReplicas should be larger than or equal to 0",
    ),
    (
        scaling(FEDERATED, rule()),
        f"{AT}.targetMaxReplicas: Invalid value: null: targetMinReplicas and targetMaxReplicas cannot be nil at "
        "the same time if you want to scale FederatedHPA",
    ),
    (
        scaling(FEDERATED, rule(targetMinReplicas=0, targetMaxReplicas=0)),
        f"[{AT}.targetMinReplicas: Invalid value: 0: targetMinReplicas should be larger than 0, "
        f"{AT}.targetMaxReplicas: Invalid value: 0: targetMaxReplicas should be larger than 0]",
    ),
    (
        scaling(FEDERATED, rule(targetMinReplicas=3, targetMaxReplicas=2)),
        f"{AT}.targetMinReplicas: Invalid value: 3: "
        "targetMaxReplicas should be larger than or equal to targetMinReplicas",
    ),
    (scaling(FEDERATED, rule(targetMinReplicas=3)), ""),
    (scaling(FEDERATED, rule(targetMaxReplicas=1)), ""),
)
async def test_a_cron_autoscaler_is_refused_for(obj: Obj, text: str, refused: Any) -> None:
    assert await refused(PATH, obj) == text


def test_a_schedule_that_never_starts_is_warned_of() -> None:
    context = Context(Settings())
    assert validate(scaling(DEPLOYMENT, rule(schedule="0 0 * * 7", targetReplicas=1)), None, context) == []
    [warning] = context.warnings
    assert warning.startswith("spec.rules[0].schedule: '0 0 * * 7' is accepted but never starts: ")


@cases(
    "* * * * *", "*/5 0-6,22 1 JAN-mar sun", "0 0 ? * MON#1", "0 0 L * 5L", "0 0 15W * *", "0 0 LW * *",
    "0 0 * * 7", "30 0 0 * * *", "0 0 * * * 2030", "0 0 0 1 1 ? 2030", " @hourly ", "@everysecond", "5/15 * * * *",
)  # fmt: skip
def test_schedules(text: str) -> None:
    assert is_schedule(text)


@cases(
    "", "*", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *",
    "5-1 * * * *", "a * * * *", "* * * foo *", "@never", "@every 5m", "1,,2 * * * *", "* * * * * * * *",
    "1-2-3 * * * *", "١ * * * *", "* * 32W * *", "-1 * * * *",
)  # fmt: skip
def test_no_schedules(text: str) -> None:
    assert not is_schedule(text)
