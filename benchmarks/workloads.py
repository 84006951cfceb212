"""Clusters and bindings for the scheduler: as different, and as alike, as they are in the world.

Bindings differ in name, uid, replicas and request, and share a handful of placements; half of them have been scheduled
before.
"""

from __future__ import annotations

from random import Random

from karmada.kube.objects.types import Obj

_KINDS = [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}]
_GRADES = [("0", "0"), ("1", "4Gi"), ("2", "16Gi"), ("4", "32Gi"), ("8", "64Gi"), ("16", "128Gi"), ("32", "256Gi")]
_MODELS = [
    {"grade": grade, "ranges": [{"name": "cpu", "min": cpu}, {"name": "memory", "min": memory}]}
    for grade, (cpu, memory) in enumerate(_GRADES)
]
_REQUESTS = [{"cpu": cpu, "memory": memory} for cpu in ("100m", "250m", "1") for memory in ("128Mi", "512Mi", "2Gi")]
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


def cluster_name(number: int) -> str:
    return f"member{number:04d}"


def cluster(random: Random, number: int) -> Obj:
    """With region, zone, models and usage, all by chance."""
    summary = {
        "allocatable": {"cpu": "400", "memory": "1600Gi", "pods": "5500"},
        "allocated": {"cpu": str(random.randint(1, 399)), "memory": "600Gi", "pods": str(random.randint(0, 5000))},
        "allocatableModelings": [{"grade": grade, "count": random.randint(0, 12)} for grade in range(len(_GRADES))],
    }
    region = f"region-{number % 12}"
    return {
        "metadata": {"name": cluster_name(number), "uid": str(number), "labels": {"tier": random.choice("abc")}},
        "spec": {"region": region, "zones": [f"{region}-{number % 3}"], "resourceModels": _MODELS},
        "status": {"apiEnablements": _KINDS, "resourceSummary": summary},
    }


def bindings(random: Random, strategy: str, count: int, names: list[str]) -> list[Obj]:
    """Specs of ResourceBindings."""
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
