"""What goes over the wire between a scheduler and an estimator, byte by byte where it matters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.estimator import messages
from karmada.estimator.contract import (
    GET_UNSCHEDULABLE_REPLICAS,
    MAX_AVAILABLE_COMPONENT_SETS,
    MAX_AVAILABLE_REPLICAS,
    ReplicasQuery,
    SetsQuery,
    UnschedulableQuery,
    read_replicas,
    read_sets,
    read_unschedulable,
    replicas_request,
    sets_request,
    unschedulable_request,
)
from karmada.estimator.terms import Assumption, EstimateError
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

AFFINITY: Obj = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
            "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
        }
    ]
}
TOLERATIONS: list[Obj] = [
    {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
    {"operator": "Exists", "tolerationSeconds": 0},
]
REQUIREMENTS: Obj = {
    "nodeClaim": {"hardNodeAffinity": AFFINITY, "nodeSelector": {"disk": "ssd"}, "tolerations": TOLERATIONS},
    "resourceRequest": {"cpu": "250m", "memory": "512Mi"},
    "namespace": "shop",
    "priorityClassName": "high",
}
COMPONENT: Obj = {
    "name": "worker",
    "replicas": 3,
    "replicaRequirements": {name: REQUIREMENTS[name] for name in ("nodeClaim", "resourceRequest", "priorityClassName")},
}


def test_the_methods_have_the_paths_of_karmada() -> None:
    service = "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/"
    methods = (MAX_AVAILABLE_REPLICAS, MAX_AVAILABLE_COMPONENT_SETS, GET_UNSCHEDULABLE_REPLICAS)
    assert [method.path for method in methods] == [
        service + "MaxAvailableReplicas",
        service + "MaxAvailableComponentSets",
        service + "GetUnschedulableReplicas",
    ]


@cases(
    (messages.MaxAvailableReplicasResponse(maxReplicas=5), b"\x08\x05"),
    (messages.MaxAvailableComponentSetsResponse(maxSets=5), b"\x08\x05"),
    (messages.UnschedulableReplicasResponse(unschedulableReplicas=5), b"\x08\x05"),
    (messages.Quantity(string="250m"), b"\x0a\x04250m"),
    (messages.Toleration(key="k", operator="o", value="v", effect="e", tolerationSeconds=0),
     b"\x0a\x01k\x12\x01o\x1a\x01v\x22\x01e\x28\x00"),
    (messages.ReplicaRequirements(resourceRequestBytes={"cpu": b"1"}), b"\x2a\x08\x0a\x03cpu\x12\x011"),
    (messages.ComponentReplicaRequirements(resourceRequestBytes={"cpu": b"1"}), b"\x22\x08\x0a\x03cpu\x12\x011"),
    (messages.ComponentReplicaRequirements(priorityClassName="p"), b"\x1a\x01p"),
    (messages.ReplicaRequirements(namespace="n", priorityClassName="p"), b"\x1a\x01n\x22\x01p"),
    (messages.Component(name="c", replicas=2), b"\x0a\x01c\x18\x02"),
    (messages.NodeClaim(nodeSelector={"a": "b"}, nodeAffinityBytes=b"x", tolerationsBytes=[b"y"]),
     b"\x12\x06\x0a\x01a\x12\x01b\x22\x01x\x2a\x01y"),
    (messages.UnschedulableReplicasRequest(cluster="m", unschedulableThreshold=1), b"\x0a\x01m\x18\x01"),
    (messages.ObjectReference(apiVersion="a", kind="k", namespace="n", name="m"),
     b"\x0a\x01a\x12\x01k\x1a\x01n\x22\x01m"),
    (messages.MaxAvailableComponentSetsRequest(namespace="n", assumedWorkloads=[{"namespace": "o"}]),
     b"\x1a\x01n\x22\x03\x0a\x01o"),
    (messages.MaxAvailableReplicasRequest(cluster="m", assumedWorkloads=[{"namespace": "o"}]),
     b"\x0a\x01m\x1a\x03\x0a\x01o"),
)  # fmt: skip
def test_messages_have_these_bytes(message: Any, encoded: bytes) -> None:
    assert message.SerializeToString(deterministic=True) == encoded


def test_a_request_for_replicas_comes_back_as_it_was() -> None:
    query = ReplicasQuery("member1", REQUIREMENTS, [Assumption("shop", [COMPONENT, {"name": "plain", "replicas": 1}])])
    assert read_replicas(_sent(replicas_request(query))) == query


def test_a_request_for_sets_comes_back_as_it_was() -> None:
    query = SetsQuery("member1", [COMPONENT], "shop", [Assumption("other", [COMPONENT])])
    assert read_sets(_sent(sets_request(query))) == query


def test_the_threshold_travels_in_nanoseconds_and_the_uid_stays() -> None:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "u"}
    message = _sent(unschedulable_request(UnschedulableQuery("member1", resource, 300.5)))
    assert message.unschedulableThreshold == 300_500_000_000
    assert read_unschedulable(message) == UnschedulableQuery(
        "member1", {name: value for name, value in resource.items() if name != "uid"}, 300.5
    )


def test_what_is_none_is_absent_in_both_forms() -> None:
    message = replicas_request(ReplicasQuery("member1", None))
    assert not message.HasField("replicaRequirements")
    assert read_replicas(message).requirements is None
    empty = replicas_request(ReplicasQuery("member1", {})).replicaRequirements
    assert not empty.HasField("nodeClaim")
    assert not empty.resourceRequest
    assert not empty.resourceRequestBytes
    claim = replicas_request(ReplicasQuery("member1", {"nodeClaim": {}})).replicaRequirements.nodeClaim
    assert not claim.HasField("nodeAffinity")
    assert not claim.nodeAffinityBytes
    assert not unschedulable_request(UnschedulableQuery("member1", None, 0)).HasField("resource")


@cases("typed", "bytes")
def test_either_form_alone_is_understood(form: str) -> None:
    message = replicas_request(ReplicasQuery("member1", REQUIREMENTS))
    needs = message.replicaRequirements
    absent = ("resourceRequestBytes", "nodeAffinityBytes", "tolerationsBytes")
    for name in absent if form == "typed" else ("resourceRequest", "nodeAffinity", "tolerations"):
        (needs if name.startswith("resource") else needs.nodeClaim).ClearField(name)
    assert read_replicas(_sent(message)).requirements == REQUIREMENTS


def test_the_encoded_form_wins_over_the_typed_one() -> None:
    message = replicas_request(ReplicasQuery("member1", REQUIREMENTS))
    needs = message.replicaRequirements
    needs.resourceRequest["cpu"].string = "9"
    needs.nodeClaim.nodeAffinity.Clear()
    needs.nodeClaim.tolerations[0].key = "other"
    assert read_replicas(_sent(message)).requirements == REQUIREMENTS


def test_an_affinity_without_terms_is_not_the_same_as_none() -> None:
    query = ReplicasQuery("member1", {"nodeClaim": {"hardNodeAffinity": {"nodeSelectorTerms": []}}})
    assert read_replicas(_sent(replicas_request(query))) == ReplicasQuery("member1", query.requirements, [])


def test_quantities_are_sent_in_their_canonical_form() -> None:
    message = replicas_request(ReplicasQuery("member1", {"resourceRequest": {"cpu": "0.25", "memory": 1024}}))
    assert read_replicas(message).requirements == {"resourceRequest": {"cpu": "250m", "memory": "1024"}}


def test_an_encoded_field_that_cannot_be_read_is_named() -> None:
    message = messages.MaxAvailableReplicasRequest(replicaRequirements={"resourceRequestBytes": {"cpu": b"\xff"}})
    with pytest.raises(EstimateError, match=r"^resourceRequestBytes\[cpu\]: "):
        read_replicas(message)


@cases("typed", "bytes")
def test_a_quantity_that_cannot_be_read_is_named(form: str) -> None:
    quantity = messages.Quantity(string="much")
    typed: Obj = {"resourceRequest": {"cpu": quantity}}
    encoded: Obj = {"resourceRequestBytes": {"cpu": quantity.SerializeToString()}}
    message = messages.MaxAvailableReplicasRequest(replicaRequirements=typed if form == "typed" else encoded)
    with pytest.raises(EstimateError, match=r'^resourceRequest\[cpu\]: "much": '):
        read_replicas(message)


_text = st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=5)
_requirement = st.fixed_dictionaries(
    {"key": _text, "operator": st.sampled_from(["In", "NotIn", "Exists", "Gt"])},
    optional={"values": st.lists(_text, min_size=1, max_size=2)},
)
_term = st.fixed_dictionaries(
    {}, optional={name: st.lists(_requirement, min_size=1, max_size=2) for name in ("matchExpressions", "matchFields")}
)
_toleration: st.SearchStrategy[Obj] = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("key", "operator", "value", "effect"), _text),
        "tolerationSeconds": st.integers(0, 2**63 - 1),
    },
)
_claim = st.fixed_dictionaries(
    {},
    optional={
        "hardNodeAffinity": st.fixed_dictionaries({"nodeSelectorTerms": st.lists(_term, max_size=2)}),
        "nodeSelector": st.dictionaries(_text, _text, min_size=1, max_size=2),
        "tolerations": st.lists(_toleration, min_size=1, max_size=2),
    },
)


@given(_claim)
def test_every_node_claim_comes_back_as_it_was(claim: Obj) -> None:
    query = ReplicasQuery("member1", {"nodeClaim": claim}, [])
    assert read_replicas(_sent(replicas_request(query))) == query


def _sent(message: Any) -> Any:
    """What the other side reads."""
    return type(message).FromString(message.SerializeToString())
