"""The quarantine: what hung the event loop is noted for the next process, which leaves it alone until it changes."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.current_work import Work
from karmada.kube.runtime.quarantine import WHOLE, Entry, Quarantine, fingerprint
from tests.support.cases import cases


class File:
    content = b""

    def write(self, content: bytes) -> None:
        self.content = content


def opened(file: File, clock: FakeClock) -> Quarantine:
    quarantine = Quarantine(clock)
    quarantine.load(file.content, file.write)
    return quarantine


def key(name: str, now: str = "as it was") -> Work:
    return Work("key", name, "detector", lambda: now)


def test_the_next_process_holds_the_key_that_hung_the_loop(clock: FakeClock) -> None:
    file = File()
    opened(file, clock).blame([Work("request", "GET /apis"), key("ns/web")], 30.2, "spin (plugin.py:3)")
    (entry,) = opened(file, clock).entries()
    assert (entry.controller, entry.key, entry.fingerprint) == ("detector", "ns/web", "as it was")
    assert (entry.seconds, entry.stack, entry.at) == (30.2, "spin (plugin.py:3)", clock.now())


def test_a_key_is_noted_even_if_its_object_cannot_be_read(clock: FakeClock) -> None:
    def changing() -> str:
        raise RuntimeError("dictionary changed size during iteration")

    file = File()
    opened(file, clock).blame([Work("key", "ns/web", "detector", changing)], 30, "")
    (entry,) = opened(file, clock).entries()
    assert (entry.key, entry.fingerprint, entry.object) == ("ns/web", "", {})


def test_the_innermost_work_of_a_controller_is_to_blame(clock: FakeClock) -> None:
    quarantine = Quarantine(clock)
    quarantine.blame([Work("object", "pods ns/web", "other"), key("ns/innocent")], 30, "")
    assert [entry.name for entry in quarantine.entries()] == [("other", "pods ns/web")]


@cases([], [Work("request", "GET /apis")], [Work("object", "pods ns/web")])
def test_nothing_is_noted_of_what_is_no_controllers(work: list[Work], clock: FakeClock) -> None:
    file = File()
    opened(file, clock).blame(work, 30, "")
    assert file.content == b""


def test_a_key_is_held_until_its_object_changes(clock: FakeClock) -> None:
    quarantine, taken_up = Quarantine(clock), list[str]()
    held = quarantine.of("detector")
    end = held.follow(lambda: taken_up.append("again"))
    quarantine.blame([key("ns/web")], 30, "")
    assert held.holds("ns/web", lambda: "as it was")
    assert held.holds("ns/web", lambda: ""), "unknown is no change"
    assert not held.holds("ns/other", lambda: "whatever")
    assert not taken_up
    assert not held.holds("ns/web", lambda: "changed")
    assert (taken_up, quarantine.entries()) == (["again"], [])
    end()
    quarantine.add(Entry(controller="detector", key="ns/web"))
    held.changed("ns/web", "ns/unknown")
    assert (taken_up, quarantine.entries()) == (["again"], [])


@cases((4, True), (6, False))
def test_three_keys_within_ten_minutes_are_all_keys(minutes: int, whole: bool, clock: FakeClock) -> None:
    quarantine = Quarantine(clock)
    for name in ("ns/a", "ns/b", "ns/c"):
        quarantine.blame([key(name)], 30, "")
        clock._now += minutes * 60
    assert (WHOLE in quarantine.of("detector").entries) is whole
    assert quarantine.of("detector").holds("ns/d", lambda: "whatever") is whole
    assert not quarantine.of("other").holds("ns/d", lambda: "whatever")


@cases(b"", b"\0", b'{"entries": [{}]}')
def test_a_damaged_file_holds_nothing(content: bytes, clock: FakeClock) -> None:
    quarantine = Quarantine(clock)
    quarantine.load(content, lambda _content: None)
    assert quarantine.entries() == []


def test_the_metric_counts_keys_by_controller(clock: FakeClock) -> None:
    quarantine, registry = Quarantine(clock), CollectorRegistry()
    registry.register(quarantine)
    quarantine.of("at rest")
    quarantine.blame([key("ns/web")], 30, "")
    page = generate_latest(registry).decode()
    assert 'controller_quarantined_keys{controller="detector"} 1.0' in page
    assert "at rest" not in page


def workload(**more: Any) -> Obj:
    metadata = {"name": "web", "resourceVersion": "1", "generation": 1, "managedFields": [{}], "labels": {"app": "web"}}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 1}, "status": {}, **more}


@cases(
    (workload(status={"replicas": 1}), True),
    (workload(metadata={**workload()["metadata"], "resourceVersion": "2", "managedFields": []}), True),
    (workload(spec={"replicas": 2}), False),
    (workload(metadata={**workload()["metadata"], "labels": {}}), False),
    (workload(metadata={**workload()["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}), False),
    (None, False),
)
def test_a_fingerprint_changes_with_all_but_status_and_versions(other: Obj | None, same: bool) -> None:
    assert (fingerprint(workload()) == fingerprint(other)) is same
