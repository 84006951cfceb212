"""The scheduling algorithm alone, without any API: bindings a second for each strategy, with 100 and 1,000 clusters.

Bindings differ in name, uid, replicas and request, and share a handful of placements, as bindings do; half of them have
been scheduled before. Between bindings a cluster reports other usage now and then. Seconds are those that the process
had a core, not those on the wall, so that a busy machine measures the same.
"""

from __future__ import annotations

import operator
import time
from random import Random
from typing import Any

from bench.report import GOALS, show

Obj = dict[str, Any]
SIZES = {100: 5000, 1000: 1000}
"""Numbers of clusters, and how many bindings a second are wanted with them."""
_KINDS = [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}]
_GRADES = [("0", "0"), ("1", "4Gi"), ("2", "16Gi"), ("4", "32Gi"), ("8", "64Gi"), ("16", "128Gi"), ("32", "256Gi")]
_MODELS = [
    {"grade": grade, "ranges": [{"name": "cpu", "min": cpu}, {"name": "memory", "min": memory}]}
    for grade, (cpu, memory) in enumerate(_GRADES)
]
_REQUESTS = [{"cpu": cpu, "memory": memory} for cpu in ("100m", "250m", "1") for memory in ("128Mi", "512Mi", "2Gi")]
_REPORT_EVERY = 50
_DIVIDED = {"replicaSchedulingType": "Divided"}
_WEIGHTED = {**_DIVIDED, "replicaDivisionPreference": "Weighted"}
STRATEGIES: dict[str, Obj] = {
    "no replicas": {},
    "Duplicated": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
    "Aggregated": {"replicaScheduling": {**_DIVIDED, "replicaDivisionPreference": "Aggregated"}},
    "dynamic weight": {"replicaScheduling": {**_WEIGHTED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}},
    "static weight": {
        "replicaScheduling": {
            **_WEIGHTED,
            "weightPreference": {
                "staticWeightList": [
                    {"targetCluster": {"labelSelector": {"matchLabels": {"tier": tier}}}, "weight": weight}
                    for weight, tier in enumerate("abc", 1)
                ]
            },
        }
    },
    "spread by region": {
        "replicaScheduling": {**_WEIGHTED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}},
        "spreadConstraints": [
            {"spreadByField": "region", "minGroups": 2, "maxGroups": 3},
            {"spreadByField": "cluster", "minGroups": 3, "maxGroups": 10},
        ],
    },
    "spread by zone": {
        "replicaScheduling": {**_WEIGHTED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}},
        "spreadConstraints": [
            {"spreadByField": "zone", "minGroups": 2, "maxGroups": 3},
            {"spreadByField": "cluster", "minGroups": 3, "maxGroups": 10},
        ],
    },
}


def cluster(random: Random, number: int) -> Obj:
    summary = {
        "allocatable": {"cpu": "400", "memory": "1600Gi", "pods": "5500"},
        "allocated": {"cpu": str(random.randint(1, 399)), "memory": "600Gi", "pods": str(random.randint(0, 5000))},
        "allocatableModelings": [{"grade": grade, "count": random.randint(0, 12)} for grade in range(len(_GRADES))],
    }
    region = f"region-{number % 12}"
    return {
        "metadata": {"name": f"member{number:04d}", "uid": str(number), "labels": {"tier": random.choice("abc")}},
        "spec": {"region": region, "zones": [f"{region}-{number % 3}"], "resourceModels": _MODELS},
        "status": {"apiEnablements": _KINDS, "resourceSummary": summary},
    }


def bindings(random: Random, strategy: str, count: int, names: list[str]) -> list[Obj]:
    placements = [
        {**STRATEGIES[strategy], "clusterAffinity": {"exclude": [name]}, "clusterTolerations": [{"operator": "Exists"}]}
        for name in random.sample(names, 8)
    ]
    found = []
    for number in range(count):
        spec: Obj = {
            "resource": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": f"web-{number}",
                "uid": f"uid-{number}",
            },
            "placement": random.choice(placements),
        }
        if strategy != "no replicas":
            spec["replicas"] = random.randint(1, 300)
            spec["replicaRequirements"] = {"resourceRequest": random.choice(_REQUESTS)}
            if number % 2:
                some = random.sample(names, 5)
                spec["clusters"] = [{"name": name, "replicas": random.randint(1, 30)} for name in some]
        found.append(spec)
    return found


def rate(size: int, strategy: str, count: int) -> float:
    """Bindings a second of one core."""
    from karmada.scheduler.algorithm import schedule
    from karmada.scheduler.estimators.general import GeneralEstimator
    from karmada.scheduler.fleet import Fleet
    from karmada.scheduler.request import Request

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
        assert decision.failure is None or "not enough" in decision.failure.text, decision.failure
    return count / (time.process_time() - began)


def measure(share: float) -> None:
    for size, goal in SIZES.items():
        count = max(int(share * 500_000 / size), 200)
        for strategy in STRATEGIES:
            name = f"bindings/s, {size:,} clusters: {strategy}"
            GOALS[name] = (goal, operator.ge)
            show(name, rate(size, strategy, count))


if __name__ == "__main__":
    measure(1.0)
