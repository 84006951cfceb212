"""Random fleets and bindings: small enough to fail often, varied enough to meet every rule."""

from __future__ import annotations

from random import Random
from typing import Any

from karmada.kube.objects.types import Obj
from tests.support.scheduling_cases import AGGREGATED, DUPLICATED, DYNAMIC, KINDS, WEIGHTED, cluster

GRADES = [("0", "0"), ("1", "1Gi"), ("2", "4Gi"), ("8", "16Gi")]
MODELS = [
    {
        "grade": grade,
        "ranges": [{"name": "cpu", "min": cpu, "max": "99"}, {"name": "memory", "min": memory, "max": "99Gi"}],
    }
    for grade, (cpu, memory) in enumerate(GRADES)
]


def random_summary(random: Random) -> Obj | None:
    if random.random() < 0.05:
        return None
    summary: Obj = {
        "allocatable": {
            "pods": str(random.choice([0, 3, 10, 40, 110])),
            "cpu": random.choice(["0", "500m", "4", "16", "33"]),
            "memory": random.choice(["1Gi", "8Gi", "20G", "64Gi"]),
        },
    }
    if random.random() < 0.3:
        summary["allocatable"]["example.com/gpu"] = str(random.randint(0, 8))
    if random.random() < 0.6:
        summary["allocated"] = {"pods": str(random.randint(0, 8)), "cpu": random.choice(["250m", "3", "5"])}
    if random.random() < 0.3:
        summary["allocating"] = {"pods": "1", "memory": "512Mi"}
    if random.random() < 0.3:
        summary["allocatableModelings"] = [
            {"grade": grade, "count": random.choice([0, 0, 1, 2, 5])} for grade in range(len(GRADES))
        ]
    return summary


def random_clusters(random: Random, most: int = 12) -> list[Obj]:
    found = [random_cluster(random, f"m{number}") for number in range(random.randint(0, most))]
    random.shuffle(found)
    return found


def random_cluster(random: Random, name: str) -> Obj:
    return cluster(
        name,
        labels={"tier": random.choice("abc")} if random.random() < 0.8 else {},
        region=random.choice(["r1", "r2", "r3", "r4", ""]) if random.random() < 0.9 else "",
        zones=random.sample(["z1", "z2", "z3"], random.randint(0, 2)),
        provider=random.choice(["p1", "p2", ""]),
        taints=random.choice([[]] * 6 + [["old=yes:NoSchedule"], ["x:NoExecute"], ["y=1:PreferNoSchedule"]]),
        kinds=KINDS if random.random() < 0.93 else KINDS[1:],
        summary=random_summary(random),
        models=MODELS if random.random() < 0.8 else [],
        deleting=random.random() < 0.05,
    )


def random_affinity(random: Random) -> Obj:
    affinity: Obj = {}
    if random.random() < 0.4:
        affinity["clusterNames"] = random.sample([f"m{n}" for n in range(12)], random.randint(0, 9))
    if random.random() < 0.2:
        affinity["exclude"] = random.sample([f"m{n}" for n in range(12)], 2)
    if random.random() < 0.3:
        operator = random.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        values: Any = {"values": random.sample("abc", 2)} if operator.endswith("In") else {}
        affinity["labelSelector"] = {"matchExpressions": [{"key": "tier", "operator": operator, **values}]}
    if random.random() < 0.3:
        key = random.choice(["region", "zone", "provider"])
        values = random.sample([f"{key[0]}{n}" for n in range(1, 5)], 2)
        operator = random.choice(["In", "NotIn"])
        affinity["fieldSelector"] = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    return affinity


def random_scheduling(random: Random) -> Obj | None:
    kind = random.randrange(7)
    if kind == 0:
        return None
    if kind < 5:
        return [DUPLICATED, AGGREGATED, DYNAMIC, WEIGHTED][kind - 1]
    rules = [
        {"targetCluster": random_affinity(random), "weight": random.randint(0, 6)} for _ in range(random.randint(0, 4))
    ]
    return {**WEIGHTED, "weightPreference": {"staticWeightList": rules}}


def random_spread(random: Random) -> list[Obj]:
    kind = random.random()
    if kind < 0.4:
        return []
    bounds = [random.randint(1, 4), random.randint(1, 6)]
    found = [{"spreadByField": "cluster", "minGroups": min(bounds), "maxGroups": random.choice([max(bounds), 0])}]
    if kind < 0.8:
        bounds = [random.randint(1, 3), random.randint(1, 4)]
        found.append(
            {"spreadByField": "region", "minGroups": min(bounds), "maxGroups": random.choice([max(bounds), 0])}
        )
    random.shuffle(found)
    return found


def random_placement(random: Random) -> Obj:
    found: Obj = {}
    scheduling = random_scheduling(random)
    if scheduling is not None:
        found["replicaScheduling"] = scheduling
    if constraints := random_spread(random):
        found["spreadConstraints"] = constraints
    kind = random.random()
    if kind < 0.3:
        found["clusterAffinity"] = random_affinity(random)
    elif kind < 0.6:
        found["clusterAffinities"] = [random_term(random, f"g{n}") for n in range(random.randint(1, 3))]
    if random.random() < 0.3:
        found["clusterTolerations"] = [
            random.choice(
                [{"key": "old", "operator": "Equal", "value": "yes"}, {"operator": "Exists", "effect": "NoExecute"}]
            )
        ]
    return found


def random_term(random: Random, name: str) -> Obj:
    term = {"affinityName": name, **random_affinity(random)}
    if random.random() < 0.5:
        term["overflowAffinities"] = [
            {"affinityName": f"{name}-{n}", **random_affinity(random)} for n in range(random.randint(1, 2))
        ]
    return term


def random_spec(random: Random, where: Obj) -> Obj:
    uid = random.choice(["", "uid-1", "uid-2", "abc"])
    kind = random.random()
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": uid}
    spec: Obj = {"resource": resource, "placement": where}
    if kind < 0.1:
        spec["resource"] = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "settings"}
    else:
        spec["replicas"] = random.choice([0, 1, 2, 3, 5, 8, 13, 30, 90])
        if random.random() < 0.8:
            spec["replicaRequirements"] = {"resourceRequest": random_request(random)}
    if kind > 0.95:
        spec["components"] = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 2}]
    if random.random() < 0.5:
        names = random.sample([f"m{n}" for n in range(14)], random.randint(1, 4))
        spec["clusters"] = [{"name": name, "replicas": random.randint(0, 9)} for name in names]
    if random.random() < 0.1:
        spec["gracefulEvictionTasks"] = [{"fromCluster": f"m{random.randrange(12)}"}]
    return spec


def random_request(random: Random) -> Obj:
    request = {}
    if random.random() < 0.8:
        request["cpu"] = random.choice(["0", "100m", "250m", "1", "1500m"])
    if random.random() < 0.7:
        request["memory"] = random.choice(["64Mi", "1Gi", "500M"])
    if random.random() < 0.15:
        request["example.com/gpu"] = "1"
    return request
