"""Which policy counts, and which waiting templates a policy may select."""

from __future__ import annotations

from typing import Any

import pytest

from karmada.controllers.detector.claims import CLUSTER_POLICIES, POLICIES, claim_of, claiming_patch
from karmada.controllers.detector.policies import Waiting, best
from karmada.controllers.templates import Ref, unqueued
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.propagation import cluster_policy, config_map, policy, selecting

CM = GVK("", "v1", "ConfigMap")
NAMED = selecting("ConfigMap", name="a")
LABELLED = selecting("ConfigMap", labelSelector={"matchLabels": {"app": "a"}})
EMPTY_SELECTOR = selecting("ConfigMap", labelSelector={})
ALL = selecting("ConfigMap")


def deleting(found: Obj) -> Obj:
    return {**found, "metadata": {**found["metadata"], "deletionTimestamp": "2024-01-01T00:00:00Z"}}


@cases(
    ([], None),
    ([policy("a", selecting("ConfigMap", name="other"))], None),
    ([policy("a", selecting("Secret"))], None),
    ([policy("b", ALL), policy("a", ALL)], "a"),
    ([policy("a", ALL), policy("b", EMPTY_SELECTOR)], "b"),
    ([policy("a", ALL), policy("b", LABELLED)], "b"),
    ([policy("a", LABELLED), policy("b", NAMED)], "b"),
    ([policy("a", NAMED), policy("b", ALL, priority=1)], "b"),
    ([policy("a", NAMED, priority=-1), policy("b", ALL)], "b"),
    ([policy("a", selecting("Secret"), NAMED), policy("b", LABELLED)], "a"),
    ([deleting(policy("a", NAMED)), policy("b", ALL)], "b"),
    ([policy("a", selecting("ConfigMap", labelSelector={"matchExpressions": [{"key": "x"}]}))], None),
    ([policy("a", selecting("ConfigMap", namespace="elsewhere"))], None),
)
def test_the_policy_that_counts(policies: list[Obj], winner: str | None) -> None:
    template = config_map("a", labels={"app": "a"})
    for order in (policies, policies[::-1]):
        found = best(order, template)
        assert (found["metadata"]["name"] if found else None) == winner


@cases(
    (selecting("ConfigMap"), ["a", "b", "c"]),
    (selecting("ConfigMap", namespace="one"), ["a", "b"]),
    (selecting("ConfigMap", namespace="one", name="b"), ["b"]),
    (selecting("ConfigMap", name="c"), ["c"]),
    (selecting("ConfigMap", name="z"), []),
    (selecting("Secret"), []),
)
def test_waiting_templates_are_found_by_kind_namespace_and_name(selector: Obj, names: list[str]) -> None:
    waiting = Waiting()
    for namespace, name in (("one", "a"), ("one", "b"), ("two", "c"), ("two", "gone")):
        waiting.add(Ref(CM, namespace, name))
    waiting.discard(Ref(CM, "two", "gone"))
    waiting.discard(Ref(CM, "three", "never"))
    assert [ref.name for ref in waiting.candidates([selector])] == names
    assert len(waiting) == 3
    assert Ref(CM, "one", "a") in waiting
    waiting.drop(CM)
    assert not list(waiting.candidates([selector]))


@pytest.mark.parametrize("lazily", [True, False])
@pytest.mark.parametrize(
    "ref", [Ref(CM, "default", "a"), Ref(GVK("apps", "v1", "Deployment"), "", "system:node"), Ref(CM, "lazily", "a")]
)
def test_a_template_goes_through_a_queue_and_comes_out_the_same(ref: Ref, lazily: bool) -> None:
    assert unqueued(ref.queued(lazily=lazily)) == (ref, lazily)


POLICY_CLAIM: dict[str, Any] = {
    "labels": {POLICIES.id_label: "i"},
    "annotations": {POLICIES.namespace_annotation: "default", POLICIES.name_annotation: "pp"},
}
CLUSTER_CLAIM: dict[str, Any] = {
    "labels": {CLUSTER_POLICIES.id_label: "i"},
    "annotations": {CLUSTER_POLICIES.name_annotation: "cpp"},
}


@cases(
    ({}, None),
    (POLICY_CLAIM, "default/pp"),
    (CLUSTER_CLAIM, "cpp"),
    ({"labels": POLICY_CLAIM["labels"]}, None),
    ({"annotations": POLICY_CLAIM["annotations"]}, None),
    ({**POLICY_CLAIM, "annotations": {POLICIES.name_annotation: "pp"}}, None),
)
def test_a_claim_counts_when_it_is_complete(metadata: Obj, owner: str | None) -> None:
    claim = claim_of(config_map(**metadata))
    assert (str(claim.policy) if claim else None) == owner


def test_a_policy_replaces_a_cluster_policys_claim_with_the_resource_version_it_saw() -> None:
    pp = policy("pp")
    pp["metadata"]["labels"] = {POLICIES.id_label: "i"}
    template = config_map(resourceVersion="7", **CLUSTER_CLAIM)
    assert claiming_patch(template, POLICIES, pp) == {
        "metadata": {
            "resourceVersion": "7",
            "labels": {POLICIES.id_label: "i", CLUSTER_POLICIES.id_label: None},
            "annotations": {**POLICY_CLAIM["annotations"], CLUSTER_POLICIES.name_annotation: None},
        }
    }


def test_nothing_is_written_when_the_claim_is_there() -> None:
    pp, cpp = policy("pp"), cluster_policy("cpp")
    pp["metadata"]["labels"] = {POLICIES.id_label: "i"}
    cpp["metadata"]["labels"] = {CLUSTER_POLICIES.id_label: "i"}
    assert claiming_patch(config_map(**POLICY_CLAIM), POLICIES, pp) is None
    assert claiming_patch(config_map(**CLUSTER_CLAIM), CLUSTER_POLICIES, cpp) is None
