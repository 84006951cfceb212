"""`karmadactl render`: the manifest that a cluster would get, and the override policies behind it.

Nothing is written anywhere. Policies come from the control plane; those in the given files are taken in addition, or in
place of those with the same name, so that a policy can be tried out before it is applied. With --local the files are
all there is.

Every change has a comment above its line: the policy, the overrider's field in it, and the value before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from karmada.cli.targeting import connect
from karmada.kube.objects.types import Obj
from karmada.prediction import intended_binding as intended
from karmada.prediction import scheduling

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig
    from karmada.overrides.engine import Overrides
    from karmada.overrides.explain import Change, Place
    from karmada.prediction.world import World

_LONGEST_VALUE = 70


class Given(NamedTuple):
    """The content of the given files."""

    resources: list[Obj]
    policies: list[Obj]
    """Override policies."""
    clusters: list[Obj]
    propagation: list[Obj]
    """Propagation policies: with them, a cluster gets only what they place on it."""


@click.command()
@click.option(
    "-f", "--filename", "files", multiple=True, required=True, help="A file with resources and policies; - for stdin."
)
@click.option("--cluster", required=True, help="The cluster.")
@connect.namespace_flag
@click.option("--local", is_flag=True, help="Use only the policies and clusters of the files, without a control plane.")
@connect.connection_flags
def render(files: tuple[str, ...], cluster: str, namespace: str, local: bool, way: connect.Way) -> None:
    """Show the manifests that CLUSTER would get, with a comment for each change by an override policy.

    With a propagation policy in the files, replicas are divided as it says, and a cluster that it does not select gets
    nothing. With --local, a Cluster in the files gives the labels, region and so on of the cluster.

    \b
    Examples:
      karmadactl render -f deployment.yaml --cluster member1
      karmadactl render -f deployment.yaml -f new-policy.yaml --cluster member1
      karmadactl render -f deployment.yaml -f policies.yaml --cluster member1 --local
    """
    given = read(files)
    if not given.resources:
        raise connect.failure("no resource in the given files")
    if local:
        given = _placed(given, namespace or "default", _is_namespaced)
        texts = connect.run(_from_files(given, cluster, namespace or "default"))
    else:
        config = way.config()
        texts = connect.run(_from_control_plane(config, given, cluster, namespace or config.namespace))
    click.echo("---\n".join(texts), nl=False)


# files


def read(files: Iterable[str]) -> Given:
    from karmada.kube.client.manifests import load_manifests

    given = Given([], [], [], [])
    for name in files:
        try:
            text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
            objects = load_manifests(text)
        except (OSError, ValueError) as error:
            raise connect.failure(f"{name}: {error}") from error
        for obj in objects:
            _sort(obj, given, name)
    return given


def _sort(obj: Obj, given: Given, file: str) -> None:
    from karmada.api.cluster import Cluster
    from karmada.api.policy import ClusterOverridePolicy, ClusterPropagationPolicy, OverridePolicy, PropagationPolicy

    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise connect.failure(f"{file}: {obj['kind']} without a name")
    kept: dict[Any, list[Obj]] = {
        ClusterOverridePolicy: given.policies,
        OverridePolicy: given.policies,
        Cluster: given.clusters,
        ClusterPropagationPolicy: given.propagation,
        PropagationPolicy: given.propagation,
    }
    for kind, place in kept.items():
        if (obj["apiVersion"], obj["kind"]) == (kind.gvk.api_version, kind.gvk.kind):
            _check(kind, obj, file)
            place.append(obj)
            return
    given.resources.append(obj)


def _check(kind: Any, obj: Obj, file: str) -> None:
    """Check the shape of a policy or cluster; further rules are left to the server."""
    import msgspec

    try:
        kind.of({"spec": {}, **obj} if kind.gvk.kind != "Cluster" else {"spec": {"syncMode": "Push"}, **obj})
    except msgspec.ValidationError as error:
        raise connect.failure(f'{file}: {obj["kind"]} "{obj["metadata"]["name"]}": {error}') from error


def _placed(given: Given, namespace: str, is_namespaced: Any) -> Given:
    """With a namespace in everything that lives in one."""

    def placed(obj: Obj) -> Obj:
        if obj["metadata"].get("namespace") or not is_namespaced(obj):
            return obj
        return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}

    return given._replace(resources=[*map(placed, given.resources)], policies=[*map(placed, given.policies)])


def _is_namespaced(obj: Obj) -> bool:
    """Return what is not known is taken to be."""
    from karmada.api.crds import all_kinds
    from karmada.kube.kinds.inventory import ROWS

    known = {(row.version, row.kind): row.namespaced for row in ROWS}
    known |= {(info.gvk.api_version, info.gvk.kind): info.namespaced for info in all_kinds()}
    return known.get((obj["apiVersion"], obj["kind"]), True)


def _bare(clusters: Sequence[Obj], names: Iterable[str]) -> list[Obj]:
    """Return the clusters, and for each other name one that has nothing but its name."""
    known = {cluster["metadata"]["name"] for cluster in clusters}
    others = [name for name in dict.fromkeys(names) if name not in known]
    return [*clusters, *({"kind": "Cluster", "metadata": {"name": name}, "spec": {}} for name in others)]


def _cluster_names(value: Any) -> Iterator[str]:
    """Yield the clusters that a policy names anywhere in its placement."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from inner or () if key == "clusterNames" else _cluster_names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _cluster_names(inner)


async def _from_files(given: Given, cluster: str, namespace: str) -> list[str]:
    from karmada.prediction.world import World

    named = [name for policy in given.propagation for name in _cluster_names(policy.get("spec") or {})]
    clusters = _bare(given.clusters, [cluster, *named])
    shares = await _shares(World("*,-APIEnablement"), given, clusters, cluster, namespace)
    return _render(given, shares, cluster, clusters)


# the control plane


async def _from_control_plane(config: RestConfig, given: Given, cluster: str, namespace: str) -> list[str]:
    from karmada.api.cluster import Cluster
    from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
    from karmada.kube.objects.gvk import GVK
    from karmada.prediction.world import World

    async with connect.connected(config) as client:
        catalog = await client.mapper.catalog()

        def is_namespaced(obj: Obj) -> bool:
            mapping = catalog.by_gvk.get(GVK.parse(obj["apiVersion"], obj["kind"]))
            return mapping.namespaced if mapping is not None else _is_namespaced(obj)

        given = _placed(given, namespace, is_namespaced)
        clusters = [*given.clusters]
        if not any(found["metadata"]["name"] == cluster for found in clusters):
            clusters.append({**await client.get(Cluster.gvr, cluster), "kind": "Cluster"})
        world = World()
        if given.propagation:
            await world.over(client)
        shares = await _shares(world, given, clusters, cluster, namespace)
        found = [
            {**policy, "kind": ClusterOverridePolicy.gvk.kind}
            for policy in (await client.list_all(ClusterOverridePolicy.gvr)).items
        ]
        for space in sorted({resource["metadata"].get("namespace") or "" for resource in given.resources} - {""}):
            policies = (await client.list_all(OverridePolicy.gvr, space)).items
            found += [{**policy, "kind": OverridePolicy.gvk.kind} for policy in policies]
    return _render(given._replace(policies=[*found, *given.policies]), shares, cluster, clusters)


# shares


class Share(NamedTuple):
    """The part of a resource that a cluster gets: the manifest with its replicas, or why it gets nothing."""

    manifest: Obj
    refusal: str = ""


async def _shares(world: World, given: Given, clusters: Sequence[Obj], cluster: str, namespace: str) -> list[Share]:
    """Return what the cluster gets of each resource: by the policies of the world, if there are any in the files."""
    from karmada.api.cluster import Cluster

    if not given.propagation:
        return [Share(resource) for resource in given.resources]
    for one in clusters:
        world.put(Cluster.gvr, one)
    for policy in given.propagation:
        policy = await intended.admitted(policy, namespace)
        world.put(intended.policy_kind(policy).gvr, policy)
    return [await _share(world, resource, cluster) for resource in given.resources]


async def _share(world: World, resource: Obj, cluster: str) -> Share:
    from karmada.scheduler.explain import explain

    try:
        policy = await intended.policy_for(world, resource, (), [])
    except intended.NoPolicy as error:
        return Share(resource, str(error))
    spec = await intended.binding_spec(world, resource, policy)
    decision = world.decide(await world.situation(spec))
    goals = scheduling.counts(decision.targets)
    if cluster in goals:
        return Share(await _revised(world, resource, {**spec, "clusters": decision.targets}, goals, cluster))
    if decision.failure is not None:
        return Share(resource, decision.failure.text)
    attempt = explain(decision)[-1]
    return Share(resource, next((one.why for one in attempt.clusters if one.cluster == cluster), ""))


async def _revised(world: World, resource: Obj, spec: Obj, goals: Mapping[str, int], cluster: str) -> Obj:
    """As the binding controller makes it, before overrides."""
    from karmada.controllers.binding.manifests import completions_of, with_completions
    from karmada.interpreter.operations import REVISE_REPLICA
    from karmada.kube.objects.gvk import gvk_of

    interpreter = await world.interpreter()
    if spec.get("replicas") and interpreter.enabled(gvk_of(resource), REVISE_REPLICA):
        resource = await interpreter.revise_replica(resource, goals[cluster])
    completions = completions_of(resource, spec, goals)
    return with_completions(resource, completions, cluster) if completions else resource


# rendering


def _render(given: Given, shares: Sequence[Share], cluster: str, clusters: list[Obj]) -> list[str]:
    from karmada.overrides.engine import Overrides

    overrides = Overrides.of_objects([*given.policies, *clusters])
    return [
        _not_selected(share, cluster) if share.refusal else _rendered(overrides, share.manifest, cluster)
        for share in shares
    ]


def _not_selected(share: Share, cluster: str) -> str:
    manifest = share.manifest
    return f"# {manifest['kind']} {intended.name_of(manifest)}: {cluster} is not selected: {share.refusal}\n"


def _rendered(overrides: Overrides, resource: Obj, cluster: str) -> str:
    from karmada.overrides.errors import OverrideError
    from karmada.overrides.explain import explain

    try:
        explained = explain(overrides, resource, cluster)
    except OverrideError as error:
        raise connect.failure(f'{resource["kind"]} "{resource["metadata"]["name"]}": {error.message}') from error
    return commented(explained.applied.manifest, explained.changes)


def commented(obj: Obj, changes: Iterable[Change]) -> str:
    """Return an object as YAML, with a comment above every line that a change made."""
    from karmada.kube.schema.yamlio import dump_yaml

    lines = dump_yaml(obj).decode().splitlines()
    comments: dict[int, list[str]] = {}
    numbers = _line_numbers("\n".join(lines))
    for change in changes:
        place = change.place if change.operation != "remove" or change.lost else change.place[:-1]
        while place not in numbers:
            place = place[:-1]
        comments.setdefault(numbers[place], []).append(_comment(change))
    written: list[str] = []
    for number, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip(" "))]
        written += (f"{indent}# {comment}" for comment in comments.get(number, ()))
        written.append(line)
    return "\n".join(written) + "\n"


def _comment(change: Change) -> str:
    if change.lost:
        return f"{change}: changed, and removed by a later change"
    if change.operation == "add":
        return f"{change}: added"
    was = _shown(change.before)
    return f"{change}: was {was}" if change.operation == "replace" else f"{change}: removed {change.place[-1]} ({was})"


def _shown(value: Any) -> str:
    import orjson

    text = orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _line_numbers(text: str) -> dict[Place, int]:
    """Return where each part of a YAML document starts: the line of its key, or of its dash in a list."""
    import yaml

    found: dict[Place, int] = {(): 0}
    waiting: list[tuple[Place, Any]] = [((), yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))]
    while waiting:
        place, node = waiting.pop()
        below: list[tuple[str | int, Any, Any]] = []
        if isinstance(node, yaml.MappingNode):
            below = [(key.value, key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            below = [(index, item, item) for index, item in enumerate(node.value)]
        for key, start, value in below:
            found[(*place, key)] = start.start_mark.line
            waiting.append(((*place, key), value))
    return found
