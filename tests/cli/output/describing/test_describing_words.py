"""How descriptions are put, without a cluster."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada.cli.output.describing.around import Around, events
from karmada.cli.output.describing.generic import label, words
from karmada.cli.output.describing.jobs import _indexes
from karmada.cli.output.describing.kinds import describe
from karmada.cli.output.describing.pods import toleration_text
from karmada.cli.output.describing.services import endpoints_text
from karmada.cli.output.describing.sheet import Sheet, shown
from karmada.cli.output.describing.words import access_modes, at, notes
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

NOW = parse_time("2026-01-01T12:00:00Z")


class Nothing:
    """A cluster that has nothing."""

    async def list_all(self, *_: Any, **__: Any) -> Any:
        raise NotFound("nothing here")

    get = list_all


def described(obj: Obj) -> list[str]:
    around = Around(Nothing(), NOW)  # type: ignore[arg-type]
    return asyncio.run(describe(obj, around)).splitlines()


@cases(
    ("creationTimestamp", "Creation Timestamp"),
    ("apiVersion", "API Version"),
    ("uid", "UID"),
    ("podIPs", "Pod I Ps"),
    ("HTTPServer", "HTTP Server"),
    ("hostURL", "Host URL"),
    ("some-thing", "Some - Thing"),
    ("snake_case", "snake_case"),
    ("with.dot", "with.dot"),
    ("number1field", "number1field"),
    ("UIDs", "UI Ds"),
    ("x", "X"),
    ("X", "X"),
)
def test_names_of_fields_become_titles(name: str, title: str) -> None:
    assert label(name) == title


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L"]), max_size=20))
def test_words_of_a_name_together_are_the_name(name: str) -> None:
    assert "".join(words(name)) == name


@cases(
    (None, "<nil>"),
    (True, "true"),
    (5, "5"),
    (5.0, "5"),
    (0.5, "0.5"),
    (1e-7, "1e-07"),
    (0.00001234, "1.234e-05"),
    (0.0001, "0.0001"),
    (1.5e30, "1.5e+30"),
    (-2.5, "-2.5"),
    ([1, "a", None], "[1 a <nil>]"),
    ({"b": 1, "a": [2]}, "map[a:[2] b:1]"),
)
def test_values_look_as_go_prints_them(value: Any, text: str) -> None:
    assert shown(value) == text


def test_blocks_of_lines_align_among_themselves() -> None:
    sheet = Sheet()
    sheet.field("A", 1)
    sheet.field("Longer", "two\nlines\tand a tab")
    sheet.row(0, "Title:")
    sheet.row(1, "B:", "x")
    assert sheet.text() == "A:       1\nLonger:  two\nlines    and a tab\nTitle:\n  B:  x\n"


def test_what_steers_terminals_is_made_visible() -> None:
    sheet = Sheet()
    sheet.field("Name", "a\x1b[31mred\r")
    assert sheet.text() == "Name:  a^[[31mred\\r\n"


def test_long_annotations_begin_below_their_key_and_end_in_dots() -> None:
    sheet = Sheet()
    pairs = {"b": "1\n2\n", "a": "x" * 200, "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    notes(sheet, "Annotations", pairs)
    lines = [line.strip() for line in sheet.text().splitlines()]
    assert lines == ["Annotations:  a:", "x" * 138 + "...", "b:", "1", "2"]


def test_events_report_when_and_how_often() -> None:
    once = {"type": "Normal", "reason": "Once", "message": " hm \n", "firstTimestamp": "2026-01-01T11:59:50Z"}
    often = {
        "type": "Warning",
        "reason": "Often",
        "count": 3,
        "firstTimestamp": "2026-01-01T11:00:00Z",
        "lastTimestamp": "2026-01-01T11:59:00Z",
        "source": {"component": "kubelet"},
    }
    series = {
        "type": "Normal",
        "reason": "Series",
        "eventTime": "2026-01-01T10:00:00.000000Z",
        "lastTimestamp": None,
        "series": {"count": 7, "lastObservedTime": "2026-01-01T11:58:00.000000Z"},
        "reportingComponent": "me",
    }
    sheet = Sheet()
    events(sheet, [often, {**once, "lastTimestamp": "2026-01-01T11:59:50Z"}, series], NOW)
    text = sheet.text()
    assert [line.split()[1] for line in text.splitlines()[3:]] == ["Series", "Often", "Once"]
    assert "2m (x7 over 120m)  me" in text
    assert "60s (x3 over 60m)  kubelet" in text
    assert "10s" in text
    assert text.endswith("hm\n")


def test_no_events_and_none_to_be_seen_are_not_the_same() -> None:
    sheet = Sheet()
    events(sheet, None, NOW)
    assert sheet.text() == ""
    events(sheet, [], NOW)
    assert sheet.text() == "Events:  <none>\n"


def test_a_container_that_ended_before_shows_how() -> None:
    ended = {"exitCode": 137, "signal": 9, "reason": "OOMKilled", "message": "too much"}
    state = {
        "name": "c",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {
            "terminated": {**ended, "startedAt": "2026-01-01T11:00:00Z", "finishedAt": "2026-01-01T11:01:00Z"}
        },
        "ready": False,
        "restartCount": 4,
    }
    deletion = {"deletionTimestamp": "2026-01-01T11:59:00Z", "deletionGracePeriodSeconds": 30}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", **deletion},
        "spec": {"containers": [{"name": "c", "image": "i"}], "ephemeralContainers": [{"name": "e", "image": "j"}]},
        "status": {"phase": "Running", "nominatedNodeName": "n", "containerStatuses": [state]},
    }
    lines = [" ".join(line.split()) for line in described(pod)]
    for expected in (
        "Status: Terminating (lasts 60s)",
        "Termination Grace Period: 30s",
        "NominatedNodeName: n",
        "State: Waiting",
        "Reason: CrashLoopBackOff",
        "Last State: Terminated",
        "Reason: OOMKilled",
        "Message: too much",
        "Exit Code: 137",
        "Signal: 9",
        "Restart Count: 4",
        "Ephemeral Containers:",
    ):
        assert expected in lines


@cases("Pod", "Service", "Node", "Namespace", "PersistentVolume", "Endpoints", "Secret")
def test_an_object_with_almost_nothing_in_it_is_described_all_the_same(kind: str) -> None:
    made = "2026-01-01T11:00:00Z"
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "creationTimestamp": made}, "spec": {}}
    assert described(obj)[0].split() == ["Name:", "x"]


def test_an_object_that_makes_no_sense_to_its_describer_shows_its_fields() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"image": 3}, "what"]}}
    lines = described(pod)
    assert lines[:2] == ["Name:         x", "Namespace:    "]
    assert "    what" in lines


@cases(
    ({"operator": "Exists"}, "op=Exists"),
    ({"key": "a", "operator": "Exists", "tolerationSeconds": 0}, "a op=Exists for 0s"),
    ({"key": "a", "value": "b", "effect": "NoSchedule"}, "a=b:NoSchedule"),
    ({"effect": "NoSchedule", "operator": "Exists"}, ":NoSchedule op=Exists"),
)
def test_tolerations(toleration: Obj, text: str) -> None:
    assert toleration_text(toleration) == text


def test_three_endpoints_are_shown_and_the_others_counted() -> None:
    def points(*ready: bool | None) -> list[Obj]:
        return [
            {"addresses": [f"10.0.0.{number}"], "conditions": {} if is_ready is None else {"ready": is_ready}}
            for number, is_ready in enumerate(ready)
        ]

    def sliced(*ready: bool | None) -> Obj:
        return {"ports": [{"name": "web", "port": 80}, {"name": "x", "port": 81}], "endpoints": points(*ready)}

    assert endpoints_text([], "web") == "<none>"
    assert endpoints_text([sliced()], "web") == ""
    assert endpoints_text([sliced(True, False, None)], "web") == "10.0.0.0:80,10.0.0.2:80"
    five = "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."
    assert endpoints_text([sliced(True, True, True, True), sliced(True)], "web") == five
    assert endpoints_text([{"endpoints": points(True)}], "web") == "10.0.0.0"


def test_a_long_list_of_indexes_is_cut_at_a_comma() -> None:
    assert _indexes("") == "<none>"
    assert _indexes("0-4") == "0-4"
    text = ",".join(str(number) for number in range(0, 100, 2))
    cut = _indexes(text)
    assert cut.endswith(",...")
    assert text.startswith(cut.removesuffix("..."))
    assert 50 < len(cut.removesuffix("...")) < 55


def test_access_modes_come_in_a_fixed_order_and_once() -> None:
    assert access_modes(["ReadWriteMany", "ReadWriteOnce", "ReadWriteMany"]) == "RWO,RWX"
    assert access_modes(None) == ""


def test_at_takes_null_for_nothing() -> None:
    assert at({"a": {"b": None}}, "a.b", 3) == 3
    assert at({"a": "text"}, "a.b") == ""
    assert at(None, "a") == ""
