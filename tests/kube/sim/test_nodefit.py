from __future__ import annotations

from karmada.kube.objects.node_selection import selection_of
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.nodefit import Fit, fit, matches_node, tolerates, untolerated
from tests.support.cases import cases

NODE: Obj = {"metadata": {"name": "n1", "labels": {"zone": "a", "cores": "8"}}}
TAINT: Obj = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def required(*terms: Obj) -> Obj:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def expression(key: str, operator: str, *values: str) -> Obj:
    return {"key": key, "operator": operator, "values": list(values)}


@cases(
    (expression("zone", "In", "a", "b"), True),
    (expression("zone", "In", "b"), False),
    (expression("none", "In", "a"), False),
    (expression("zone", "NotIn", "b"), True),
    (expression("zone", "NotIn", "a"), False),
    (expression("none", "NotIn", "a"), True),
    (expression("zone", "Exists"), True),
    (expression("none", "Exists"), False),
    (expression("none", "DoesNotExist"), True),
    (expression("zone", "DoesNotExist"), False),
    (expression("cores", "Gt", "7"), True),
    (expression("cores", "Gt", "8"), False),
    (expression("cores", "Lt", "9"), True),
    (expression("cores", "Lt", "8"), False),
    (expression("zone", "Gt", "1"), False),
    (expression("none", "Lt", "1"), False),
)
def test_an_expression_holds_for_a_node_by_its_operator(requirement: Obj, holds: bool) -> None:
    spec = required({"matchExpressions": [requirement]})
    assert matches_node(spec, selection_of(spec), NODE) is holds


@cases(
    ({}, True),
    ({"nodeName": "n1"}, True),
    ({"nodeName": "n2"}, False),
    ({"nodeSelector": {"zone": "a"}}, True),
    ({"nodeSelector": {"zone": "a", "cores": "4"}}, False),
    (required({"matchFields": [expression("metadata.name", "In", "n1")]}), True),
    (required({"matchFields": [expression("metadata.name", "In", "n2")]}), False),
    (required(), False),
    (required({}), False),
    (
        required(
            {"matchExpressions": [expression("zone", "In", "b")]},
            {"matchExpressions": [expression("cores", "Exists")]},
        ),
        True,
    ),
    (
        required(
            {
                "matchExpressions": [expression("zone", "In", "a")],
                "matchFields": [expression("metadata.name", "In", "n2")],
            }
        ),
        False,
    ),
    ({"nodeSelector": {"zone": "b"}, **required({"matchExpressions": [expression("zone", "In", "a")]})}, False),
)
def test_a_node_matches_when_name_selector_and_one_required_term_do(spec: Obj, matches: bool) -> None:
    assert matches_node(spec, selection_of(spec), NODE) is matches


@cases(
    ({"operator": "Exists"}, True),
    ({"operator": "Exists", "effect": "NoExecute"}, False),
    ({"key": "gpu", "operator": "Exists"}, True),
    ({"key": "gpu", "value": "yes"}, True),
    ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
    ({"key": "gpu", "value": "yes", "effect": "NoSchedule"}, True),
    ({"key": "gpu", "value": "yes", "effect": "PreferNoSchedule"}, False),
    ({"key": "cpu", "operator": "Exists"}, False),
    ({"value": "yes"}, False),
)
def test_a_toleration_covers_a_taint_by_key_value_and_effect(toleration: Obj, does: bool) -> None:
    assert tolerates(toleration, TAINT) is does


def test_the_first_untolerated_taint_of_the_effects_requested_is_found() -> None:
    taints = [{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "effect": "NoSchedule"}, TAINT]
    assert untolerated(taints, [{"key": "b", "operator": "Exists"}], ("NoSchedule",)) is TAINT
    assert untolerated(taints, [{"operator": "Exists"}], ("NoSchedule",)) is None


@cases(("PreferNoSchedule", Fit(True, True)), ("NoSchedule", Fit(False, True)), ("NoExecute", Fit(False, False)))
def test_a_taint_keeps_pods_out_or_also_drives_them_out(effect: str, expected: Fit) -> None:
    tainted = {**NODE, "spec": {"taints": [{"key": "gpu", "effect": effect}]}}
    assert fit({}, None, [], tainted) == expected
    assert fit({}, None, [{"key": "gpu", "operator": "Exists"}], tainted) == Fit(True, True)
    assert fit({"nodeName": "other"}, None, [{"operator": "Exists"}], tainted) == Fit(False, False)
