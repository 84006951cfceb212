"""The reports that are kept of a binding's Works are those that a look at all of them would find."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.api.well_known import BINDING_ID
from karmada.api.work import Work
from karmada.controllers.binding_status.aggregation import aggregate, report_of
from karmada.controllers.binding_status.reports import FEW, IDLE, Reports
from karmada.controllers.indexes import WORKS_OF, owners_of_work
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.doc import parse_custom
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.shapes import BARE_DOCS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from tests.support.counting import counted_turns
from tests.support.fake_api import FakeApi, FakeTransport
from tests.support.fleet import deployment

KINDS: dict[GVR, tuple[str, bool, tuple[str, ...]]] = {Work.gvr: ("Work", True, ())}
WEB, API = Key("default", "web-deployment"), Key("default", "api-deployment")
IDS = {WEB: "web-id", API: "api-id"}
BINDINGS = {identity: binding for binding, identity in IDS.items()}
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
OTHER = {**REFERENCE, "name": "other"}
CLUSTERS = 3 * FEW
SETTLED = 200.0
"""Seconds after which an informer has whatever the server has."""

CONTENTS: list[Obj] = [
    {},
    {"conditions": [{"type": "Applied", "status": "False", "message": "no"}]},
    {"conditions": [{"type": "Applied", "status": "True"}]},
    *(
        {
            "conditions": [{"type": "Applied", "status": "True"}],
            "manifestStatuses": [
                {
                    "identifier": {
                        "ordinal": 0,
                        "group": "apps",
                        "version": "v1",
                        "kind": "Deployment",
                        "resource": "",
                        "namespace": "default",
                        "name": "web",
                    },
                    "health": health,
                    "status": status,
                }
            ],
        }
        for health, status in (("Healthy", {"replicas": 1}), ("Unhealthy", {"replicas": 2, "note": "x" * 600}))
    ),
]
"""What a Work may say, also at a length that is not shared."""


def work(cluster: int, status: Obj, *, of: Key = WEB, template: str = "web", deleting: bool = False) -> Obj:
    metadata: Obj = {"namespace": f"karmada-es-c{cluster}", "name": "w", "labels": {BINDING_ID: IDS[of]}}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": {"workload": {"manifests": [deployment(template)]}}, "status": status}


class Watched:
    """The Works of a server, an informer of them, and what is kept of their reports."""

    def __init__(self, *, handled: bool = False, **reports: Any) -> None:
        """`handled`: Works are read when the informer delivers them, too."""
        self.handled = handled
        self.fake = FakeApi(KINDS)
        self.clock = FakeClock()
        self.client = Client(FakeTransport(self.fake))
        self._settings = reports

    async def start(self) -> None:
        indexes = {WORKS_OF: owners_of_work}
        self.informer = Informer(
            self.client, Work.gvr, indexes=indexes, clock=self.clock, shape=BARE_DOCS._replace(of_bytes=parse_custom)
        )
        self.reports = Reports(self.informer, self.clock, **self._settings)
        if self.handled:
            self.informer.add_handler(self._handle)
        self.informer.start()
        await self.clock.advance(SETTLED)

    def _handle(self, _old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.reports.changed(BINDINGS[meta.labels(new)[BINDING_ID]], new)

    async def stop(self) -> None:
        await self.reports.stop()
        await self.informer.stop()

    async def write(self, made: Obj) -> None:
        metadata = made["metadata"]
        exists = (Work.gvr, metadata["namespace"], metadata["name"]) in self.fake.objects
        await (self.client.update(Work.gvr, made) if exists else self.client.create(Work.gvr, made))

    async def delete(self, cluster: int) -> None:
        if (Work.gvr, f"karmada-es-c{cluster}", "w") in self.fake.objects:
            await self.client.delete(Work.gvr, "w", f"karmada-es-c{cluster}")

    async def fill(self) -> None:
        for cluster in range(CLUSTERS):
            await self.write(work(cluster, CONTENTS[3]))
        await self.clock.advance(1)

    async def read(self, binding: Key = WEB, reference: Obj = REFERENCE) -> list[Obj] | str:
        """The items, or the error."""
        return _items(await self.reports.read(binding, IDS[binding], reference))

    def made_from_scratch(self, binding: Key = WEB, reference: Obj = REFERENCE) -> list[Obj] | str:
        works = self.informer.by_index(WORKS_OF, IDS[binding])
        return _items([report_of(made, reference) for made in works if not meta.is_deleting(made)])


def _items(reports: list[Any]) -> list[Obj] | str:
    try:
        return aggregate(reports)
    except ApiError as error:
        return error.message


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    """All clusters have reported, and that was read once."""
    watched = Watched()
    await watched.start()
    await watched.fill()
    await watched.read()
    yield watched
    await watched.stop()


@pytest.fixture
def reads() -> Iterator[list[Obj]]:
    """The Works that were read."""
    seen: list[Obj] = []

    def counted(made: Obj, reference: Obj) -> Any:
        seen.append(made)
        return report_of(made, reference)

    with patch("karmada.controllers.binding_status.reports.report_of", counted):
        yield seen


CLUSTER = st.integers(0, CLUSTERS - 1)
STEP = st.one_of(
    st.tuples(st.just("write"), CLUSTER, st.sampled_from(range(len(CONTENTS)))),
    st.tuples(st.sampled_from(["delete", "deleting", "recreate", "move", "mistake"]), CLUSTER, st.just(0)),
    st.tuples(st.sampled_from(["read", "read", "rename"]), st.just(0), st.integers(0, 1)),
    st.tuples(st.sampled_from(["relist", "break", "backup", "restore", "restart", "rest"]), st.just(0), st.just(0)),
)


@settings(max_examples=60)
@given(steps=st.lists(STEP, max_size=30), small=st.booleans(), handled=st.booleans())
def test_after_any_history_the_reports_are_those_of_all_works_read_anew(
    steps: list[tuple[str, int, int]], small: bool, handled: bool
) -> None:
    """Works are created, changed, deleted and made again while others are read; memory may be too small for all."""

    async def run() -> None:
        watched = Watched(handled=handled, most_bytes=5_000) if small else Watched(handled=handled)
        await watched.start()
        await watched.fill()
        for what, cluster, value in steps:
            await _step(watched, what, cluster, value)
        for _ in range(int(SETTLED // (IDLE / 2))):  # read so often that nothing is dropped
            await watched.read()
            await watched.clock.advance(IDLE / 2)
        for binding, reference in ((WEB, REFERENCE), (API, REFERENCE), (WEB, OTHER)):
            found = await watched.read(binding, reference)
            assert found == watched.made_from_scratch(binding, reference)
        latest = watched.fake.listed(Work.gvr)
        assert sorted(watched.informer.keys()) == [key_of(obj) for obj in latest]
        await watched.stop()

    with patch("karmada.kube.runtime.time_slice.SLICE_SECONDS", -1.0):  # others run after each Work
        asyncio.run(run())


async def _step(watched: Watched, what: str, cluster: int, value: int) -> None:
    fake, clock = watched.fake, watched.clock
    if what == "write":
        await watched.write(work(cluster, CONTENTS[value]))
    elif what == "delete":
        await watched.delete(cluster)
    elif what == "recreate":
        await watched.delete(cluster)
        await watched.write(work(cluster, CONTENTS[1]))
    elif what == "deleting":
        await watched.write(work(cluster, CONTENTS[3], deleting=True))
    elif what == "move":
        await watched.write(work(cluster, CONTENTS[2], of=API))
    elif what == "mistake":
        await watched.write(work(cluster, CONTENTS[2], template="another"))
    elif what in ("relist", "break"):
        if what == "relist":
            fake.compact()
        fake.break_watches()
    elif what == "backup":
        fake.backup = (dict(fake.objects), fake.revision)
    elif what == "restore":
        fake.restore()
        await clock.advance(SETTLED)
    elif what == "restart":
        await watched.stop()
        await watched.start()
    elif what == "rest":
        await clock.advance(IDLE)
        assert len(watched.reports) == 0
    else:
        reference = OTHER if what == "rename" else REFERENCE
        await clock.advance(value)
        before = watched.made_from_scratch(reference=reference)
        found = await watched.read(reference=reference)
        assert found == before or before != watched.made_from_scratch(reference=reference)


async def test_only_works_that_have_changed_are_read_again(watched: Watched, reads: list[Obj]) -> None:
    await watched.read()
    assert len(reads) == CLUSTERS
    reads.clear()
    await watched.write(work(5, CONTENTS[1]))
    await watched.write(work(CLUSTERS, CONTENTS[2]))
    await watched.delete(7)
    await watched.clock.advance(1)
    items = await watched.read()
    assert sorted(made["metadata"]["namespace"] for made in reads) == ["karmada-es-c24", "karmada-es-c5"]
    assert items == watched.made_from_scratch()
    assert len(items) == CLUSTERS


async def test_a_list_without_changes_has_nothing_read_again(watched: Watched, reads: list[Obj]) -> None:
    await watched.read()
    reads.clear()
    watched.fake.compact()
    watched.fake.break_watches()
    await watched.clock.advance(SETTLED / 4)
    await watched.read()
    assert reads == []


@pytest.mark.parametrize(("missing", "kept_after"), [(0, 2), (1, 1)])
async def test_what_all_clusters_have_reported_is_not_kept_when_it_is_read_once(
    reads: list[Obj], missing: int, kept_after: int
) -> None:
    """As every binding is after a start. While a report is missing, others will follow."""
    watched = Watched()
    await watched.start()
    await watched.fill()
    for cluster in range(missing):
        await watched.write(work(cluster, {}))
    await watched.clock.advance(1)
    for _ in range(3):
        await watched.read()
        await watched.clock.advance(IDLE)
    for _ in range(4):
        await watched.read()
    assert len(reads) == (3 + kept_after) * CLUSTERS
    await watched.stop()


async def test_the_reports_of_a_binding_at_rest_are_dropped(watched: Watched) -> None:
    await watched.read()
    await watched.clock.advance(IDLE / 2)
    await watched.read()
    await watched.clock.advance(IDLE - 1)
    assert len(watched.reports) == 1
    await watched.clock.advance(1)
    assert len(watched.reports) == 0


async def test_bindings_with_few_works_are_not_kept(watched: Watched) -> None:
    for cluster in range(FEW, CLUSTERS):
        await watched.delete(cluster)
    await watched.clock.advance(1)
    assert len(await watched.read()) == FEW
    assert len(watched.reports) == 0


async def test_of_too_many_reports_those_go_first_that_were_not_read_for_longest() -> None:
    watched = Watched(most_bytes=CLUSTERS * 250)
    await watched.start()
    await watched.fill()
    for binding in (WEB, API, WEB, API):
        await watched.reports.read(binding, IDS[WEB], REFERENCE)
    assert len(watched.reports) == 1
    watched.reports.disown(lambda key: key == API)
    assert len(watched.reports) == 1
    watched.reports.disown(lambda key: key == WEB)
    assert len(watched.reports) == 0
    await watched.stop()


async def test_clusters_that_report_the_same_share_it(watched: Watched) -> None:
    reports = await watched.reports.read(WEB, IDS[WEB], REFERENCE)
    assert len({id(report.contents) for report in reports}) == 1


async def test_works_that_the_informer_delivers_need_not_be_read_again(reads: list[Obj]) -> None:
    watched = Watched(handled=True)
    await watched.start()
    await watched.fill()
    await watched.read()
    await watched.read()
    reads.clear()
    await watched.write(work(5, CONTENTS[1]))
    await watched.clock.advance(1)
    assert len(reads) == 1
    assert await watched.read() == watched.made_from_scratch()
    assert len(reads) == 1
    await watched.stop()


async def test_others_run_while_many_works_are_read(watched: Watched) -> None:
    with patch("karmada.kube.runtime.time_slice.SLICE_SECONDS", -1.0), counted_turns() as turns:
        await watched.read()
    assert turns.count >= CLUSTERS
