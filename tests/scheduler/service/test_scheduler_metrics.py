"""What a scraper reads after something was scheduled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from karmada.controllers.context import Context
from karmada.estimator.terms import EstimateError
from karmada.kube.objects.clock import FakeClock
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.metrics import Counters, Histograms, Metrics, growing
from karmada.kube.runtime.queue import WorkQueue
from karmada.scheduler.estimators.protocol import EstimateRequest, RemoteEstimator
from karmada.scheduler.meter import Meter
from karmada.scheduler.service.metrics import SchedulerMetrics
from karmada.scheduler.service.scheduler import BindingScheduler, scheduler_parts
from karmada.version import info
from tests.support.control_plane import assemble
from tests.support.scheduling_cases import DUPLICATED, DYNAMIC, config_map, deployment, placement, spread
from tests.support.scheduling_plane import BINDINGS, Scheduling, scheduling

DECISIONS = [f"{0.001 * 2**n:g}" for n in range(15)]
POINTS = [f"{0.0001 * 2**n:g}" for n in range(12)]
ESTIMATES = DECISIONS[:10]


class Page:
    """What is served, read as Prometheus reads it."""

    def __init__(self, text: str) -> None:
        self.families: dict[str, Metric] = {family.name: family for family in text_string_to_metric_families(text)}

    def value(self, name: str, /, **labels: str) -> float | None:
        samples = (sample for family in self.families.values() for sample in family.samples)
        return next((sample.value for sample in samples if sample.name == name and sample.labels == labels), None)

    def labels(self, family: str) -> list[Mapping[str, str]]:
        """Of each series, without its buckets."""
        found: list[Mapping[str, str]] = []
        for sample in self.families[family].samples:
            labels = {name: value for name, value in sample.labels.items() if name != "le"}
            if labels not in found:
                found.append(labels)
        return found

    def bounds(self, family: str) -> list[str]:
        first = self.labels(family)[0]
        samples = self.families[family].samples
        return [s.labels["le"] for s in samples if "le" in s.labels and first.items() <= s.labels.items()]


class Scraped:
    def __init__(self, plane: Scheduling, metrics: Metrics) -> None:
        self.plane = plane
        self._metrics = metrics

    def page(self) -> Page:
        return Page(self._metrics.expose()[0].decode())


@asynccontextmanager
async def scraping(folder: Path, *, gates: str = "", remote: RemoteEstimator | None = None) -> AsyncIterator[Scraped]:
    """A scheduler in a process that is scraped."""
    async with scheduling(folder, scheduler=False) as plane:

        def parts(context: Context) -> list[Reconciler]:
            if gates:
                context.gates.set(gates)
            return [*scheduler_parts(context, estimators=[remote] if remote is not None else [])]

        assembly = assemble(plane.plane.server, parts)
        manager, metrics = assembly.manager, assembly.metrics
        async with manager:
            plane.managers.append(manager)
            yield Scraped(plane, metrics)
            plane.managers.remove(manager)


@pytest.fixture
async def scraped(folder: Path) -> AsyncIterator[Scraped]:
    async with scraping(folder) as found:
        yield found


# what there is


async def test_every_figure_has_its_name_its_labels_and_its_buckets(scraped: Scraped) -> None:
    await scraped.plane.clusters("m1", "m2", pods=9)
    await scraped.plane.bind("web-deployment", deployment(4, placement(DYNAMIC)))
    page = scraped.page()
    scheduler, estimator = "karmada_scheduler", "karmada_scheduler_estimator_estimating"
    done = {"result": "scheduled", "schedule_type": "ReconcileSchedule"}
    histograms = {
        f"{scheduler}_e2e_scheduling_duration_seconds": ([done], DECISIONS),
        f"{scheduler}_scheduling_algorithm_duration_seconds": (
            [{"schedule_step": step} for step in ("Filter", "Score", "Select", "AssignReplicas")],
            DECISIONS,
        ),
        f"{scheduler}_framework_extension_point_duration_seconds": (
            [{"extension_point": point, "result": "Success"} for point in ("Filter", "Score")],
            POINTS,
        ),
        f"{scheduler}_plugin_execution_duration_seconds": (
            [
                {"plugin": name, "extension_point": point, "result": "Success"}
                for point, names in (
                    (
                        "Filter",
                        ("APIEnablement", "TaintToleration", "ClusterAffinity", "SpreadConstraint", "ClusterEviction"),
                    ),
                    ("Score", ("ClusterAffinity", "ClusterLocality")),
                )
                for name in names
            ],
            None,
        ),
        f"{estimator}_algorithm_duration_seconds": (
            [{"result": "success", "type": "MaxAvailableReplicas", "step": "Total"}],
            ESTIMATES,
        ),
        f"{estimator}_plugin_extension_point_duration_seconds": (
            [{"estimating_plugin_extension_point": "estimate_replicas"}],
            POINTS,
        ),
        f"{estimator}_plugin_execution_duration_seconds": (
            [
                {
                    "estimating_plugin": "general-estimator",
                    "estimating_plugin_extension_point": "estimate_replicas",
                }
            ],
            None,
        ),
    }
    for name, (labels, bounds) in histograms.items():
        assert page.families[name].type == "histogram"
        assert page.families[name].documentation
        assert page.labels(name) == labels
        assert bounds is None or page.bounds(name) == [*bounds, "+Inf"]
        assert all(page.value(f"{name}_count", **one) == 1 for one in labels)
    assert page.value(f"{scheduler}_schedule_attempts_total", **done) == 1
    assert page.value(f"{scheduler}_queue_incoming_bindings_total", event="BindingAdd") == 1
    assert page.value(f"{estimator}_request_total", result="success", type="MaxAvailableReplicas") == 1
    assert not [name for name in page.families if name.endswith("_created") and name.startswith(scheduler)]


def test_the_bounds_of_plug_ins_are_called_as_go_calls_them() -> None:
    # what a loop that multiplies doubles comes to
    bounds = growing(0.00001, 1.5, 20)
    assert len(bounds) == 20
    assert bounds[:4] == (1e-05, 1.5000000000000002e-05, 2.2500000000000005e-05, 3.3750000000000005e-05)
    assert bounds[-1] == pytest.approx(0.00001 * 1.5**19)


async def test_the_version_is_reported(scraped: Scraped) -> None:
    found = info()
    assert scraped.page().value("karmada_build_info", **found._asdict()) == 1
    assert list(found._fields) == [
        "git_version", "git_commit", "git_short_commit", "git_tree_state", "build_date", "go_version", "compiler",
        "platform",
    ]  # fmt: skip


async def test_both_sorts_of_bindings_are_in_one_queue(scraped: Scraped) -> None:
    await scraped.plane.clusters("m1", pods=1)
    await scraped.plane.bind("web-deployment", deployment(1, placement(DUPLICATED)))
    await scraped.plane.bind("wide", config_map({}), namespace="")
    page = scraped.page()
    for name in ("adds_total", "queue_duration_seconds_count", "work_duration_seconds_count"):
        assert page.value(f"workqueue_{name}", name="scheduler-queue") == 2
    for name in ("depth", "unfinished_work_seconds", "longest_running_processor_seconds", "retries_total"):
        assert page.value(f"workqueue_{name}", name="scheduler-queue") == 0
    await scraped.plane.bind("big-deployment", deployment(5, placement(DYNAMIC)))
    assert scraped.page().value("workqueue_retries_total", name="scheduler-queue") == 1


# how it went


async def test_what_no_cluster_fits_counts_as_scheduled(scraped: Scraped) -> None:
    await scraped.plane.clusters("m1", pods=9)
    nowhere = placement(DYNAMIC, clusterAffinity={"clusterNames": ["other"]})
    await scraped.plane.bind("web-deployment", deployment(4, nowhere))
    page = scraped.page()
    attempts = "karmada_scheduler_schedule_attempts_total"
    assert page.value(attempts, result="scheduled", schedule_type="ReconcileSchedule") == 1
    point = "karmada_scheduler_framework_extension_point_duration_seconds_count"
    assert page.value(point, extension_point="Filter", result="Unschedulable") == 1
    steps = page.labels("karmada_scheduler_scheduling_algorithm_duration_seconds")
    assert steps == [{"schedule_step": "Filter"}]


async def test_a_scale_that_fails_is_reported_as_such(scraped: Scraped) -> None:
    await scraped.plane.clusters("m1", pods=9)
    await scraped.plane.bind("web-deployment", deployment(4, placement(DYNAMIC)))
    await scraped.plane.change("web-deployment", {"replicas": 40})
    page, failed = scraped.page(), {"result": "error", "schedule_type": "ScaleSchedule"}
    assert page.value("karmada_scheduler_schedule_attempts_total", **failed) == 1
    assert page.value("karmada_scheduler_e2e_scheduling_duration_seconds_count", **failed) == 1
    incoming = "karmada_scheduler_queue_incoming_bindings_total"
    assert page.value(incoming, event="BindingUpdate") == page.value(incoming, event="ScheduleAttemptFailure") == 1
    await scraped.plane.label("m1", some="thing")
    assert scraped.page().value(incoming, event="ClusterChanged") == 1


async def test_what_it_writes_itself_does_not_come_in(scraped: Scraped) -> None:
    await scraped.plane.clusters("m1", pods=9)
    for number in range(3):
        await scraped.plane.bind(f"web{number}-deployment", deployment(4, placement(DUPLICATED)))
    page, incoming = scraped.page(), "karmada_scheduler_queue_incoming_bindings_total"
    assert page.value(incoming, event="BindingAdd") == 3
    assert page.value(incoming, event="BindingUpdate") is None
    assert page.value("workqueue_adds_total", name="scheduler-queue") == 3


# estimators


class Slow:
    name = "scheduler-estimator"
    clock: FakeClock

    async def estimate(self, request: EstimateRequest) -> Mapping[str, int]:
        await self.clock.advance(0.25)
        if request.workload.replicas == 5:
            raise EstimateError("nobody there")
        return dict.fromkeys(request.names(), 9)


async def test_waiting_for_estimators_is_part_of_selecting(folder: Path) -> None:
    slow = Slow()
    async with scraping(folder, remote=slow) as scraped:
        slow.clock = scraped.plane.clock
        await scraped.plane.clusters("m1", pods=9)
        for replicas in (4, 5):
            await scraped.plane.bind(f"web{replicas}-deployment", deployment(replicas, placement(DYNAMIC)))
        page = scraped.page()
        step = "karmada_scheduler_scheduling_algorithm_duration_seconds_sum"
        assert page.value(step, schedule_step="Select") == 0.5
        assert page.value(step, schedule_step="Filter") == 0
        estimating = "karmada_scheduler_estimator_estimating"
        for result in ("success", "error"):
            requested = {"result": result, "type": "MaxAvailableReplicas"}
            assert page.value(f"{estimating}_request_total", **requested) == 1
            assert page.value(f"{estimating}_algorithm_duration_seconds_sum", step="Total", **requested) == 0.25
        one = f"{estimating}_plugin_execution_duration_seconds_sum"
        point = {"estimating_plugin_extension_point": "estimate_replicas"}
        assert page.value(one, estimating_plugin="general-estimator", **point) == 0
        assert page.value(one, estimating_plugin="scheduler-estimator", **point) == 0.5


async def test_sets_of_components_have_names_of_their_own(folder: Path) -> None:
    async with scraping(folder, gates="MultiplePodTemplatesScheduling=true") as scraped:
        await scraped.plane.clusters("m1", pods=9)
        components = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 2}]
        where = placement(DYNAMIC, spread("cluster", 1, 1))
        await scraped.plane.bind("job-flink", {**config_map(where), "components": components})
        page = scraped.page()
        request = "karmada_scheduler_estimator_estimating_request_total"
        assert page.value(request, result="success", type="MaxAvailableComponentSets") == 1
        point = "karmada_scheduler_estimator_estimating_plugin_extension_point_duration_seconds_count"
        assert page.value(point, estimating_plugin_extension_point="estimate_components") == 1


# what waits


def pending(scraped: Scraped) -> tuple[float | None, ...]:
    page = scraped.page()
    return tuple(page.value("scheduler_pending_bindings", queue=q) for q in ("active", "backoff", "unschedulable"))


@pytest.mark.parametrize("gates", ["", "PriorityBasedScheduling=true"])
async def test_what_waits_is_reported_by_what_it_waits_for(folder: Path, gates: str) -> None:
    async with scraping(folder, gates=gates) as scraped:
        plane = scraped.plane
        assert pending(scraped) == (0, 0, 0)
        await plane.clusters("m1", pods=3)
        await plane.bind("fine-deployment", deployment(1, placement(DYNAMIC)))
        await plane.bind("large-deployment", deployment(9, placement(DYNAMIC)))
        await plane.bind("wide-deployment", deployment(1, placement(DYNAMIC, spread("cluster", 3))))
        assert pending(scraped) == (0, 1, 1)
        await plane.change("large-deployment", {"replicas": 2})
        assert pending(scraped) == (0, 1, 0)
        await plane.client.delete(BINDINGS, "wide-deployment", "default")
        await plane.rest()
        assert pending(scraped) == (0, 0, 0)


async def nothing(_key: Key) -> None:
    """The work of a queue that is not started."""


async def test_what_is_not_checked_yet_is_active(scraped: Scraped) -> None:
    parts = scheduler_parts(scraped.plane.plane.context)
    for part, names in zip(parts, ("ab", "c"), strict=True):
        assert isinstance(part, BindingScheduler)
        queue: WorkQueue[Key] = WorkQueue("unstarted", nothing, limit=1, clock=FakeClock())
        part.follow_queue(queue)
        for name in names:
            queue.add(Key("", name))
    assert isinstance(part, BindingScheduler)
    assert part.metrics.pending() == {"active": 3, "backoff": 0, "unschedulable": 0}


# counting


def test_a_histogram_counts_up_to_and_including_its_bounds() -> None:
    histograms = Histograms("seconds", "How long", ["step"], (0.5, 1.0))
    for seconds in (0.1, 0.5, 0.7, 1.0, 3.0):
        histograms[("a",)].observe(seconds)
    samples = {(sample.name, sample.labels.get("le", "")): sample.value for sample in histograms.family().samples}
    assert samples == {
        ("seconds_bucket", "0.5"): 2,
        ("seconds_bucket", "1.0"): 4,
        ("seconds_bucket", "+Inf"): 5,
        ("seconds_count", ""): 5,
        ("seconds_sum", ""): pytest.approx(5.3),
    }


def test_counters_count_by_their_labels() -> None:
    counters = Counters("things", "What there is", ["sort"])
    for sort in "aba":
        counters[(sort,)].value += 1
    assert [(s.name, s.labels, s.value) for s in counters.family().samples] == [
        ("things_total", {"sort": "a"}, 2),
        ("things_total", {"sort": "b"}, 1),
    ]


def test_the_metrics_are_a_meter() -> None:
    meter: Meter = SchedulerMetrics(FakeClock())
    assert meter.now() == FakeClock().monotonic()
