"""Events of both APIs, and the mapping between them."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds import events
from karmada.kube.objects.copying import copy_json
from tests.kube.kinds.texts import texts
from tests.support.cases import cases
from tests.support.objects import kube_object

CORE = kube_object("v1", "Event", "e", "ns") | {
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "ns", "uid": "u"},
    "reason": "Started",
    "message": "it runs",
    "source": {"component": "kubelet"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:01Z",
    "count": 2,
    "type": "Normal",
    "reportingComponent": "kubelet",
    "reportingInstance": "n1",
}
NEW = kube_object("events.k8s.io/v1", "Event", "e", "ns") | {
    "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"},
    "reason": "Started",
    "note": "it runs",
    "type": "Normal",
    "action": "Starting",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "example.com/c",
    "reportingInstance": "n1",
}


def test_a_core_event_as_the_new_api_shows_it() -> None:
    before = copy_json(CORE)
    shown = events.from_core(CORE)
    assert before == CORE
    assert shown["apiVersion"] == "events.k8s.io/v1"
    assert shown["regarding"] == CORE["involvedObject"]
    assert shown["note"] == "it runs"
    assert shown["deprecatedSource"] == {"component": "kubelet"}
    assert (shown["deprecatedCount"], shown["deprecatedLastTimestamp"]) == (2, "2026-01-01T00:00:01Z")
    assert shown["reportingController"] == "kubelet"
    assert not {"involvedObject", "message", "source", "count", "reportingComponent"} & set(shown)


def test_there_and_back_is_the_same() -> None:
    assert events.to_core(events.from_core(CORE)) == CORE


def test_a_core_event_lives_where_its_object_lives() -> None:
    validate = events.EVENT.validate
    assert validate(CORE) == []
    elsewhere = {**CORE, "metadata": {"name": "e", "namespace": "other"}}
    assert texts(validate(elsewhere)) == [
        'involvedObject.namespace: Invalid value: "ns": does not match event.namespace'
    ]
    node = {**CORE, "involvedObject": {"kind": "Node", "name": "n"}}
    assert texts(validate(node)) == ['involvedObject.namespace: Invalid value: "": does not match event.namespace']
    assert validate({**node, "metadata": {"name": "e", "namespace": "default"}}) == []


def test_a_new_event_is_complete() -> None:
    assert events.EVENT_V1.validate(NEW) == []


@cases(
    ({"eventTime": None}, "eventTime: Required value"),
    ({"reportingController": ""}, "reportingController: Required value"),
    ({"reportingInstance": ""}, "reportingInstance: Required value"),
    ({"action": ""}, "action: Required value"),
    ({"reason": "x" * 129}, 'reason: Invalid value: "": can have at most 128 characters'),
    ({"type": "Odd"}, 'type: Invalid value: "": has invalid value: Odd'),
    ({"note": "x" * 1025}, 'note: Invalid value: "": can have at most 1024 characters'),
)
def test_the_required_fields_of_a_new_event(fields: dict[str, Any], wanted: str) -> None:
    assert wanted in texts(events.EVENT_V1.validate({**NEW, **fields}))


def test_only_the_series_of_a_new_event_moves_on() -> None:
    update = events.EVENT_V1.validate_update
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    assert update({**NEW, "series": series}, NEW) == []
    assert texts(update({**NEW, "note": "other"}, NEW)) == ['note: Invalid value: "other": field is immutable']


def test_field_selectors_of_both() -> None:
    assert events.EVENT.fields["involvedObject.name"](CORE) == "p"
    assert events.EVENT.fields["source"](CORE) == "kubelet"
    assert events.EVENT_V1.fields["regarding.kind"](NEW) == "Pod"
    assert events.EVENT_V1.fields["reportingController"](NEW) == "example.com/c"
