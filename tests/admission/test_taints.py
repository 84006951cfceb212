from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from tests.support.objects import kube_object

PATH = "validate-clustertaintpolicy"


def policy(*taints: tuple[str, str]) -> Obj:
    found = [{"key": key, "effect": effect} for key, effect in taints]
    return kube_object("policy.karmada.io/v1alpha1", "ClusterTaintPolicy", "t", spec={"taints": found})


async def test_taints_that_drive_out_must_be_allowed(refused: Any) -> None:
    obj = policy(("a", "NoSchedule"), ("a", "NoExecute"))
    assert await refused(PATH, obj) == (
        "spec.taints[1]: Forbidden: Configuring taint with NoExecute effect is not allowed, this capability must be "
        "explicitly enabled by administrators through command-line flags"
    )
    assert await refused(PATH, obj, allow_no_execute_taint_policy=True) == ""


async def test_a_taint_stands_there_once(refused: Any) -> None:
    obj = policy(("a", "NoSchedule"), ("b", "NoSchedule"), ("a", "NoSchedule"))
    assert await refused(PATH, obj) == (
        'spec.taints[0]: Duplicate value: "Duplicate taint with the same key(a) and effect(NoSchedule) is not allowed"'
    )
