"""The scheduling algorithm alone, without any API: bindings a second by strategy, with ever more clusters.

Between bindings a cluster reports other usage now and then. Seconds are those in which the process had a core, not
those on the wall, so that a busy machine measures the same.
"""

from __future__ import annotations

import os
import time
from random import Random

from benchmarks.processes import Meter
from benchmarks.scenario import Figure, Measurement, Place, Sizes
from benchmarks.workloads import STRATEGIES, bindings, cluster
from karmada.scheduler.algorithm import schedule
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.fleet import Fleet
from karmada.scheduler.request import Request

_REPORT_EVERY = 50
_WORK = 300_000
"""Bindings times clusters for each strategy, at least _LEAST bindings."""
_LEAST = 200
_GOALS = {100: 5_000.0, 1_000: 1_000.0}


class Scheduling:
    name = "scheduling"
    title = "The scheduling algorithm alone"
    counted = "clusters"
    sizes = Sizes(quick=30, base=100)
    foreign = False
    figures = tuple(Figure(name=name, unit="bindings/s", better="higher", goals=_GOALS) for name in STRATEGIES)

    async def run(self, size: int, place: Place) -> Measurement:  # noqa: ARG002 - nothing is stored
        meter = Meter({"scheduler": os.getpid()})
        count = max(_WORK // max(size, 100), _LEAST)
        rates = {strategy: _rate(size, strategy, count) for strategy in STRATEGIES}
        costs = {f"1,000 bindings, {strategy}, s": 1_000 / rate for strategy, rate in rates.items()}
        return Measurement(figures=rates, processes=meter.use(), costs=costs)


def _rate(size: int, strategy: str, count: int) -> float:
    """Bindings a second of one core."""
    random = Random(size)
    fleet = Fleet.of(cluster(random, number) for number in range(size))
    reports = [cluster(random, random.randrange(size)) for _ in range(count // _REPORT_EVERY + 1)]
    specs = bindings(random, strategy, count, [name for name in fleet.names if name])
    estimators = [GeneralEstimator()]
    began = time.process_time()
    for number, spec in enumerate(specs):
        if number % _REPORT_EVERY == 0:
            report = reports[number // _REPORT_EVERY]
            fleet = fleet.updated({report["metadata"]["name"]: report})
        decision = schedule(Request(spec), fleet, estimators)
        if decision.failure is not None and "not enough" not in decision.failure.text:
            raise RuntimeError(f"a binding could not be scheduled: {decision.failure.text}")
    return count / (time.process_time() - began)
