"""The rules of scheduling once more, in the plainest words: no arrays, no caches, no shortcuts.

Seats are given out one at a time, regions are chosen by trying all ways, estimates are made cluster by cluster. It is
slow and easy to check by eye; the differential test holds the real algorithm against it. Constraints that the rules
here do not know (zones, providers and labels as groups) are not looked at.
"""

from __future__ import annotations

import math

from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj

MAX32 = 2**31 - 1
INT64 = 2**63 - 1
UNBOUNDED = 0


class Unfit(Exception):
    pass


def fnv1a(text: str) -> int:
    value = 0x811C9DC5
    for byte in text.encode():
        value ^= byte
        value = value * 0x01000193 % 2**32
    return value


# matching


def labels_match(selector: Obj, labels: dict[str, str]) -> bool:
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or []:
        key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
        have = labels.get(key)
        if operator == "In" and have not in values:
            return False
        if operator == "NotIn" and have in values:
            return False
        if operator == "Exists" and have is None:
            return False
        if operator == "DoesNotExist" and have is not None:
            return False
    return True


def matches(cluster: Obj, affinity: Obj) -> bool:
    name, spec = cluster["metadata"]["name"], cluster.get("spec") or {}
    if name in (affinity.get("exclude") or []):
        return False
    if affinity.get("labelSelector") is not None and not labels_match(
        affinity["labelSelector"], cluster["metadata"].get("labels") or {}
    ):
        return False
    for expression in (affinity.get("fieldSelector") or {}).get("matchExpressions") or []:
        if expression["key"] == "zone":
            overlap = any(zone in expression.get("values", []) for zone in spec.get("zones") or [])
            if overlap != (expression["operator"] == "In"):
                return False
        else:
            fields = {key: spec[key] for key in ("provider", "region") if spec.get(key)}
            if not labels_match({"matchExpressions": [expression]}, fields):
                return False
    return not affinity.get("clusterNames") or name in affinity["clusterNames"]


# filters


def tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    if toleration.get("operator") in (None, "", "Equal"):
        return toleration.get("value", "") == taint.get("value", "")
    return toleration["operator"] == "Exists"


def is_workload(spec: Obj) -> bool:
    return bool(spec.get("replicas")) or spec.get("replicaRequirements") is not None or bool(spec.get("components"))


def term_of(placement: Obj, name: str) -> Obj | None:
    for term in placement.get("clusterAffinities") or []:
        if term["affinityName"] == name:
            return term
    return None


def refusal(spec: Obj, cluster: Obj, affinity_name: str) -> str | None:
    placement, name = spec["placement"], cluster["metadata"]["name"]
    cluster_spec = cluster.get("spec") or {}
    there = any(target["name"] == name for target in spec.get("clusters") or [])
    if not there:
        served = False
        for entry in (cluster.get("status") or {}).get("apiEnablements") or []:
            if entry["groupVersion"] == spec["resource"]["apiVersion"]:
                served = served or any(r["kind"] == spec["resource"]["kind"] for r in entry["resources"])
        if not served:
            return "cluster(s) did not have the API resource"
        for taint in cluster_spec.get("taints") or []:
            tolerated = any(tolerates(t, taint) for t in placement.get("clusterTolerations") or [])
            if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerated:
                shown = taint["key"] + ("=" + taint["value"] if taint.get("value") else "") + ":" + taint["effect"]
                return "cluster(s) had untolerated taint {" + shown + "}"
    affinities: list[Obj] = []
    if placement.get("clusterAffinity") is not None:
        affinities = [placement["clusterAffinity"]]
    elif (term := term_of(placement, affinity_name)) is not None:
        affinities = [term] + ((term.get("overflowAffinities") or []) if is_workload(spec) else [])
    if affinities and not any(matches(cluster, affinity) for affinity in affinities):
        return "cluster(s) did not match the placement cluster affinity constraint"
    for constraint in placement.get("spreadConstraints") or []:
        field = {"provider": "provider", "region": "region", "zone": "zones"}.get(constraint.get("spreadByField", ""))
        if field and not cluster_spec.get(field):
            return f"cluster(s) did not have {field} property"
    if any(task["fromCluster"] == name for task in spec.get("gracefulEvictionTasks") or []):
        return "cluster(s) is in the process of eviction"
    return None


def feasible(spec: Obj, clusters: list[Obj], affinity_name: str) -> list[Obj]:
    reasons: dict[str, int] = {}
    found = []
    for cluster in clusters:
        if cluster["metadata"].get("deletionTimestamp"):
            continue
        reason = refusal(spec, cluster, affinity_name)
        if reason is None:
            found.append(cluster)
        else:
            reasons[reason] = reasons.get(reason, 0) + 1
    if found:
        return found
    reported = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items())) or "no cluster exists"
    raise Unfit(f"0/{len(clusters)} clusters are available: {reported}.")


# estimates


def unit(name: str, quantity: Quantity) -> int:
    return quantity.milli() if name == "cpu" else quantity.value()


def estimate(spec: Obj, cluster: Obj) -> int:
    summary = (cluster.get("status") or {}).get("resourceSummary")
    if summary is None:
        return 0

    def left(name: str) -> Quantity:
        total = Quantity.parse(summary["allocatable"][name])
        for part in ("allocated", "allocating"):
            total = total - Quantity.parse((summary.get(part) or {}).get(name, "0"))
        return total

    pods = left("pods").value() if "pods" in summary.get("allocatable", {}) else 0
    if pods <= 0:
        return 0
    if spec.get("replicaRequirements") is None:
        return pods
    request = {k: Quantity.parse(v) for k, v in (spec["replicaRequirements"].get("resourceRequest") or {}).items()}
    models = (cluster.get("spec") or {}).get("resourceModels")
    modelings = summary.get("allocatableModelings")
    if modelings and models:
        total = 0
        for model in models:
            count = sum(m["count"] for m in modelings if m["grade"] == model["grade"])
            least = {r["name"]: Quantity.parse(r["min"]) for r in model["ranges"]}
            on_node = 110
            for name, need in request.items():
                if name in ("cpu", "memory", "ephemeral-storage") or "/" in name:
                    has = unit(name, least[name]) if name in least else 0
                    on_node = min(on_node, has // unit(name, need)) if unit(name, need) > 0 else on_node
            total += count * on_node
        return min(pods, total)
    result = pods
    for name, need in request.items():
        if need.value() <= 0:
            continue
        if name not in summary["allocatable"] or left(name).value() <= 0:
            return 0
        result = min(result, unit(name, left(name)) // unit(name, need))
    return result


def estimates(spec: Obj, clusters: list[Obj]) -> dict[str, int]:
    if not spec.get("replicas") and not spec.get("components"):
        return {cluster["metadata"]["name"]: MAX32 for cluster in clusters}
    result = {}
    for cluster in clusters:
        value = min(MAX32, estimate(spec, cluster))
        result[cluster["metadata"]["name"]] = (spec.get("replicas") or 0) if value == MAX32 else value
    return result


# ranking


class Candidate:
    def __init__(self, cluster: Obj, score: int, room: int, had: int, tier: int) -> None:
        self.cluster = cluster
        self.name: str = cluster["metadata"]["name"]
        self.score, self.room, self.available, self.tier = score, room, room + had, tier

    def key(self) -> tuple[int, int, int, str]:
        return self.tier, -self.score, -self.available, self.name


def ranked(spec: Obj, clusters: list[Obj], affinity_name: str) -> list[Candidate]:
    placement = spec["placement"]
    had = {target["name"]: target.get("replicas", 0) for target in spec.get("clusters") or []}
    rooms = estimates(spec, clusters)
    term = None if placement.get("clusterAffinity") is not None else term_of(placement, affinity_name)
    found = []
    for cluster in clusters:
        name = cluster["metadata"]["name"]
        tier = 0
        if term is not None:
            tier = 1000
            for number, affinity in enumerate([term] + (term.get("overflowAffinities") or [])):
                if matches(cluster, affinity):
                    tier = number
                    break
        found.append(Candidate(cluster, 100 if name in had else 0, rooms[name], had.get(name, 0), tier))
    return sorted(found, key=Candidate.key)


# selection


def strategy(placement: Obj) -> str:
    scheduling = placement.get("replicaScheduling")
    if scheduling is None or scheduling.get("replicaSchedulingType") == "Duplicated":
        return "Duplicated"
    if scheduling.get("replicaDivisionPreference") == "Aggregated":
        return "Aggregated"
    if scheduling.get("replicaDivisionPreference") == "Weighted":
        return "Dynamic" if (scheduling.get("weightPreference") or {}).get("dynamicWeight") else "Static"
    raise Unfit(
        "failed to assign replicas: unsupported replica scheduling strategy, "
        f"replicaSchedulingType: {scheduling.get('replicaSchedulingType', '')}, "
        f"replicaDivisionPreference: {scheduling.get('replicaDivisionPreference') or ''}, "
        "please try another scheduling strategy"
    )


def group_score(spec: Obj, members: list[Candidate], least: int, cluster_least: int) -> int:
    replicas = spec.get("replicas") or 0
    scheduling = spec["placement"].get("replicaScheduling")
    if scheduling is None or scheduling["replicaSchedulingType"] == "Duplicated":
        valid = [member for member in members if member.available >= replicas]
        return len(valid) * 1000 + sum(m.score for m in valid) // len(valid) if valid else 0
    share, enough = math.ceil(replicas / least), max(cluster_least, least)
    available = score = count = 0
    for member in members:
        available, score, count = available + member.available, score + member.score, count + 1
        if count >= enough and available >= share:
            break
    if available < share:
        return available * 1000 + score // len(members)
    return share * 1000 + score // count


def choose_groups(groups: list[tuple[str, int, int]], least: int, most: int, target: int) -> list[str] | None:
    """Groups as (name, value, weight): all ways are tried."""
    groups = sorted(groups, key=lambda g: (g[1], -g[2], g[0]))
    found: list[tuple[int, int, int, list[str]]] = []
    path: list[tuple[str, int, int]] = []

    def walk(total: int, begin: int) -> None:
        if total >= target and least <= len(path) <= most:
            names = [g[0] for g in sorted(path, key=lambda g: (-g[2], g[0]))]
            found.append((-sum(g[2] for g in path), -sum(g[1] for g in path), len(found), names))
            return
        if len(path) >= most:
            return
        for place in range(begin, len(groups)):
            path.append(groups[place])
            walk(total + groups[place][1], place + 1)
            if len(groups) == least:
                break
            path.pop()

    walk(0, 0)
    if not found:
        return None
    found.sort()
    best = found[0][3]
    for _, _, _, names in found[1:]:
        if len(names) < len(best) and best[: len(names)] == names:
            best = names
    return best


def select(spec: Obj, candidates: list[Candidate]) -> list[Candidate]:
    placement = spec["placement"]
    constraints = placement.get("spreadConstraints") or []
    scheduling = placement.get("replicaScheduling") or {}
    weights = scheduling.get("weightPreference")
    divided = scheduling.get("replicaSchedulingType") == "Divided"
    ignored = (
        divided
        and scheduling.get("replicaDivisionPreference") == "Weighted"
        and (weights is None or (bool(weights.get("staticWeightList")) and not weights.get("dynamicWeight")))
    )
    if not constraints or ignored:
        return candidates
    by_field = {constraint.get("spreadByField", ""): constraint for constraint in constraints}
    need = (spec.get("replicas") or 0) if divided else -1
    if "region" in by_field:
        return select_regions(spec, candidates, by_field["region"], by_field.get("cluster"))
    if "cluster" in by_field:
        return select_clusters(candidates, by_field["cluster"], need)
    raise Unfit("failed to select clusters: just support cluster and region spread constraint")


def select_clusters(candidates: list[Candidate], constraint: Obj, need: int) -> list[Candidate]:
    if len(candidates) < constraint.get("minGroups", 0):
        raise Unfit(
            "failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups"
        )
    count = min(len(candidates), constraint.get("maxGroups") or MAX32)
    chosen, rest = candidates[:count], candidates[count:]
    if need == -1:
        return chosen
    place = count - 1
    while sum(c.available for c in chosen) < need and place >= 0:
        best = None
        for number, other in enumerate(rest):
            better = best is None or other.available > rest[best].available
            if other.available > chosen[place].available and better:
                best = number
        if best is not None:
            chosen[place], rest[best] = rest[best], chosen[place]
        place -= 1
    if sum(c.available for c in chosen) < need or not chosen:
        raise Unfit(f"failed to select clusters: no enough resource when selecting {count} clusters")
    return chosen


def select_regions(spec: Obj, candidates: list[Candidate], region: Obj, cluster: Obj | None) -> list[Candidate]:
    least, most = region["minGroups"], region.get("maxGroups") or MAX32
    cluster_least = (cluster or {}).get("minGroups", 0)
    cluster_most = (cluster.get("maxGroups") or MAX32) if cluster is not None else 0
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.cluster["spec"]["region"], []).append(candidate)
    if len(groups) < least:
        raise Unfit("failed to select clusters: the number of feasible region is less than spreadConstraint.MinGroups")
    rows = [(n, len(members), group_score(spec, members, least, cluster_least)) for n, members in groups.items()]
    names = choose_groups(rows, least, most, cluster_least)
    if names is None:
        raise Unfit(
            "failed to select clusters: the number of clusters is less than the cluster spreadConstraint.MinGroups"
        )
    chosen = [groups[name][0] for name in names]
    rest = sorted((c for name in names for c in groups[name][1:]), key=Candidate.key)
    count = min(sum(len(groups[name]) for name in names), cluster_most)
    return chosen + (rest[: count - len(chosen)] if count > len(chosen) else [])


# division


def webster(seats: int, weights: dict[str, int], uid: str) -> dict[str, int]:
    if sum(weights.values()) == 0:
        return {}
    names = sorted(weights, reverse=bool(uid) and fnv1a(uid) % 2 == 1)
    given = dict.fromkeys(names, 0)
    for _ in range(seats):
        best = names[0]
        for name in names[1:]:
            mine, other = float(weights[name]) / (2 * given[name] + 1), float(weights[best]) / (2 * given[best] + 1)
            if mine > other or (mine == other and given[name] < given[best]):
                best = name
        given[best] += 1
    return {name: given[name] for name in sorted(given)}


def by_room(spec: Obj, replicas: int, chosen: list[Candidate], kind: str, fresh: bool) -> dict[str, int]:
    names = {candidate.name for candidate in chosen}
    had = {t["name"]: t.get("replicas", 0) for t in spec.get("clusters") or [] if t["name"] in names}
    assigned = sum(had.values())
    base: dict[str, int] = {}
    if fresh:
        step, target = "do fresh scale", replicas
        available = [(c.name, c.room + had.get(c.name, 0)) for c in chosen]
    elif assigned > replicas:
        step, target, available = "scale down", replicas, list(had.items())
    elif assigned < replicas:
        step, target, base = "scale up", replicas - assigned, had
        available = [(c.name, c.room) for c in chosen]
    else:
        return had
    available.sort(key=lambda entry: -entry[1])
    total = sum(count for _, count in available)
    if total < target:
        text = f"Clusters available replicas {total} are not enough to schedule."
        raise Unfit(f"failed to assign replicas: failed to {step}: {text}")
    if kind == "Aggregated":
        row = [entry for entry in available if base.get(entry[0])]
        row += [entry for entry in available if not base.get(entry[0])]
        available, so_far = [], 0
        for entry in row:
            if so_far >= target:
                break
            available.append(entry)
            so_far += entry[1]
    result = webster(target, dict(available), spec["resource"].get("uid", ""))
    for name, count in base.items():
        result[name] = result.get(name, 0) + count
    return result


def divide(spec: Obj, replicas: int, chosen: list[Candidate], fresh: bool) -> dict[str, int]:
    placement = spec["placement"]
    kind = strategy(placement)
    if kind == "Duplicated":
        return {candidate.name: replicas for candidate in chosen}
    if kind != "Static":
        return by_room(spec, replicas, chosen, kind, fresh)
    preference = placement["replicaScheduling"].get("weightPreference")
    weights = {}
    for candidate in chosen:
        weight = 1
        if preference is not None:
            weight = 0
            for rule in preference.get("staticWeightList") or []:
                if matches(candidate.cluster, rule["targetCluster"]):
                    weight = max(weight, rule["weight"])
        weights[candidate.name] = weight
    weights = {name: weight for name, weight in weights.items() if weight} or dict.fromkeys(weights, 1)
    return webster(replicas, weights, spec["resource"].get("uid", ""))


def assign(spec: Obj, chosen: list[Candidate], affinity_name: str, fresh: bool) -> list[Obj]:
    if not chosen:
        raise Unfit("failed to assign replicas: no clusters available to schedule")
    replicas = spec.get("replicas") or 0
    has_replicas = replicas > 0 or spec.get("replicaRequirements") is not None
    if not has_replicas or len(spec.get("components") or []) > 1:
        return [{"name": candidate.name} for candidate in chosen]
    placement = spec["placement"]
    term = None if placement.get("clusterAffinity") is not None else term_of(placement, affinity_name)
    if term is None or term.get("overflowAffinities") is None:
        shares = divide(spec, replicas, chosen, fresh)
    else:
        shares, remaining = {}, replicas
        for tier in sorted({candidate.tier for candidate in chosen}):
            members = [candidate for candidate in chosen if candidate.tier == tier]
            give = min(remaining, sum(candidate.available for candidate in members))
            shares.update(divide(spec, give, members, fresh))
            remaining -= give
            if remaining <= 0:
                break
        if remaining > 0:
            text = "Clusters available replicas are not enough to schedule."
            raise Unfit(f"failed to assign replicas: {text}")
    return [{"name": name, "replicas": count} for name, count in shares.items() if count > 0]


# everything


def attempt(spec: Obj, clusters: list[Obj], affinity_name: str, fresh: bool) -> tuple[list[Obj], list[str], str]:
    """Targets, the names selected, and the error."""
    try:
        candidates = ranked(spec, feasible(spec, clusters, affinity_name), affinity_name)
        chosen = select(spec, candidates)
        return assign(spec, chosen, affinity_name, fresh), [candidate.name for candidate in chosen], ""
    except Unfit as error:
        return [], [], str(error)


def schedule(
    spec: Obj, clusters: list[Obj], observed: str = "", fresh: bool = False
) -> tuple[list[Obj], list[str], str, str]:
    """Targets, the names selected, the error, and the group of clusters."""
    terms = spec["placement"].get("clusterAffinities") or []
    if not terms:
        return *attempt(spec, clusters, observed, fresh), ""
    names = [term["affinityName"] for term in terms]
    first_error = ""
    for name in names[names.index(observed) if observed in names else 0 :]:
        targets, chosen, error = attempt(spec, clusters, name, fresh)
        if not error:
            return targets, chosen, "", name
        first_error = first_error or error
    return [], [], first_error, ""
