"""Promote a resource of a cluster: fetch, clean and create it in the control plane, with a policy.

With --deps its dependencies are promoted first, so that nothing is propagated before all of it exists. When that fails,
the promoted dependencies are reverted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import click

from karmada.api.config import ResourceInterpreterCustomization
from karmada.api.well_known import generated_policy_name
from karmada.cli.output.printing import printer
from karmada.cli.targeting import connect
from karmada.cli.targeting.session import Session, member
from karmada.interpreter.assembly import built_in_layers
from karmada.interpreter.interpreter import Layer
from karmada.interpreter.lua.layer import Declarative
from karmada.interpreter.native.layer import Native
from karmada.interpreter.operations import INTERPRET_DEPENDENCY, InterpreterError
from karmada.interpreter.pruning import pruned
from karmada.kube.client.discovery import Catalog, Mapping, NoMatch
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj

CONFLICT_RESOLUTION = "work.karmada.io/conflict-resolution"
_MEMBER_LABELS = ("work.karmada.io/permanent-id", "karmada.io/managed")
_POLICY_VERSION = "policy.karmada.io/v1alpha1"


@dataclass(frozen=True, slots=True)
class Resource:
    """An object as the cluster has it, and the kind's place in both catalogs."""

    obj: Obj
    there: Mapping
    here: Mapping

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"].get("namespace") or "") if self.here.namespaced else ""

    @property
    def key(self) -> str:
        return f"({self.namespace}/{self.name})" if self.namespace else f"({self.name})"

    @property
    def text(self) -> str:
        group, version, resource = self.here.gvr
        return f'"{group}/{version}, Resource={resource}"{self.key}'


async def promote_resource(type_: str, name: str, flags: dict[str, Any]) -> None:
    async with (
        flags["way"].open(flags["namespace"]) as control,
        _cluster(control, flags) as cluster,
    ):
        await _Promotion(control, cluster, flags).run(type_, name)


@asynccontextmanager
async def _cluster(control: Session, flags: dict[str, Any]) -> AsyncIterator[Session]:
    """Return the cluster behind the control plane's proxy, or directly by a kubeconfig of its own."""
    if not flags["cluster_kubeconfig"]:
        async with member(control, flags["cluster"]) as session:
            yield session
        return
    config = connect.member_config(flags["cluster_kubeconfig"], flags["cluster_context"] or flags["cluster"])
    async with connect.connected(config) as client:
        yield Session(flags["cluster"], config, client, control.namespace, control.namespace_given)


class _Promotion:
    def __init__(self, control: Session, cluster: Session, flags: dict[str, Any]) -> None:
        self._control, self._cluster, self._flags = control, cluster, flags
        self._promoted: list[Resource] = []
        """Dependencies that were created by this command, in the order of their creation."""

    async def run(self, type_: str, name: str) -> None:
        resource = await self._fetch(type_, name)
        manifest = tidied(resource.obj)
        policy = self._policy(resource)
        if self._flags["output"]:
            show = printer(self._flags["output"])
            for obj in [manifest, policy] if self._flags["auto_create_policy"] else [manifest]:
                click.echo(show(obj), nl=False)
            return
        if self._flags["dry_run"]:
            return
        if self._flags["dependencies"]:
            await self._promote_dependencies(resource)
        if await self._exists(resource.here, resource):
            click.echo(
                f"Warning: Resource {resource.text} already exist in karmada control plane, you can edit "
                "PropagationPolicy and OverridePolicy to propagate it",
                err=True,
            )
            return
        try:
            await self._control.client.create(resource.here.gvr, manifest, resource.namespace)
        except ApiError:
            await self._revert()
            raise
        click.echo(f"ResourceTemplate {resource.key} is created successfully")
        if self._flags["auto_create_policy"]:
            await self._create_policy(policy)
        click.echo(f"Resource {resource.text} is promoted successfully")

    async def _fetch(self, type_: str, name: str) -> Resource:
        cluster = self._flags["cluster"]
        try:
            there = _named(await self._cluster.client.mapper.catalog(), type_)
            obj = await self._cluster.client.get(there.gvr, name, self._control.namespace if there.namespaced else "")
        except NotFound as error:
            problem = f"the {type_} or {name} don't exist in cluster({cluster})"
            raise connect.failure(f"failed to get resource in cluster({cluster}). err: {problem}") from error
        except (ApiError, connect.Failure) as error:
            problem = connect.reason(error)
            raise connect.failure(f"failed to get resource in cluster({cluster}). err: {problem}") from error
        return Resource(obj, there, await self._here(there.gvk))

    async def _here(self, gvk: GVK) -> Mapping:
        try:
            return await self._control.client.mapper.mapping(gvk)
        except NoMatch as error:
            raise connect.failure(f'no matches for kind "{gvk.kind}" in version "{gvk.api_version}"') from error

    async def _exists(self, mapping: Mapping, resource: Resource) -> bool:
        try:
            await self._control.client.get(mapping.gvr, resource.name, resource.namespace)
        except NotFound:
            return False
        return True

    # policies

    def _policy(self, resource: Resource) -> Obj:
        gvk, namespace = resource.here.gvk, resource.namespace
        metadata = {"name": self._flags["policy_name"] or generated_policy_name(namespace, resource.name, gvk)}
        if namespace:
            metadata["namespace"] = namespace
        return {
            "apiVersion": _POLICY_VERSION,
            "kind": "PropagationPolicy" if namespace else "ClusterPropagationPolicy",
            "metadata": metadata,
            "spec": {
                "conflictResolution": "Overwrite",
                "placement": {"clusterAffinity": {"clusterNames": [self._flags["cluster"]]}},
                "preserveResourcesOnDeletion": True,
                "propagateDeps": self._flags["dependencies"],
                "resourceSelectors": [{"apiVersion": gvk.api_version, "kind": gvk.kind, "name": resource.name}],
            },
        }

    async def _create_policy(self, policy: Obj) -> None:
        kind, metadata = policy["kind"], policy["metadata"]
        namespace = metadata.get("namespace", "")
        place = f"({namespace}/{metadata['name']})" if namespace else metadata["name"]
        gvr = (await self._here(GVK.parse(_POLICY_VERSION, kind))).gvr
        try:
            await self._control.client.get(gvr, metadata["name"], namespace)
        except NotFound:
            await self._control.client.create(gvr, policy, namespace)
            click.echo(f"{kind} {place} is created successfully")
            return
        raise connect.failure(f"the {kind} {place} already exist, please edit it to propagate resource")

    # dependencies

    async def _promote_dependencies(self, resource: Resource) -> None:
        references = await self._dependencies(resource.obj)
        try:
            for reference in references:
                for dependency in await self._referred(reference, resource.namespace):
                    if await self._exists(dependency.here, dependency):
                        await self._revert()
                        return
                    await self._control.client.create(dependency.here.gvr, tidied(dependency.obj), dependency.namespace)
                    self._promoted.append(dependency)
                    click.echo(f"Dependency resource {dependency.text} is promoted successfully")
        except (ApiError, connect.Failure):
            await self._revert()
            raise

    async def _dependencies(self, obj: Obj) -> list[Obj]:
        """Dependencies by the first interpreter that supports the kind; without one, a warning and no dependencies."""
        listed = await self._control.client.list_all(ResourceInterpreterCustomization.gvr)
        layers: list[tuple[str, Layer]] = [("configurable", Declarative(listed.items))]
        layers += [("thirdparty", layer) for layer in built_in_layers()]
        gvk = gvk_of(obj)
        try:
            for name, layer in layers:
                if layer.enabled(gvk, INTERPRET_DEPENDENCY):
                    click.echo(f"use {name} interpreter")
                    return await layer.get_dependencies(obj)
            native = Native()
            if native.enabled(gvk, INTERPRET_DEPENDENCY):
                click.echo("use default interpreter")
                return native.get_dependencies(obj)
        except InterpreterError as error:
            raise connect.failure(f"failed to interpret the dependencies of {gvk.kind}: {error}") from error
        click.echo(f"Warning: no interpreter knows what a {gvk.kind} of {gvk.api_version} depends on", err=True)
        return []

    async def _referred(self, reference: Obj, namespace: str) -> list[Resource]:
        gvk = GVK.parse(reference["apiVersion"], reference["kind"])
        try:
            there = await self._cluster.client.mapper.mapping(gvk)
        except NoMatch as error:
            raise connect.failure(f'no matches for kind "{gvk.kind}" in version "{gvk.api_version}"') from error
        here = await self._here(gvk)
        where = (reference.get("namespace") or namespace) if there.namespaced else ""
        if reference.get("name"):
            return [Resource(await self._cluster.client.get(there.gvr, reference["name"], where), there, here)]
        wanted = str(labels_from(reference.get("labelSelector")))
        listed = await self._cluster.client.list_all(there.gvr, where, label_selector=wanted)
        typed = {"apiVersion": gvk.api_version, "kind": gvk.kind}
        return [Resource({**typed, **obj}, there, here) for obj in listed.items]

    async def _revert(self) -> None:
        """Revert the promoted dependencies, last first; the objects in the cluster stay."""
        while self._promoted:
            dependency = self._promoted.pop()
            await self._release(dependency)
            with suppress(NotFound):
                await self._control.client.delete(dependency.here.gvr, dependency.name, dependency.namespace)
            click.echo(f"Dependency resource {dependency.text} is reverted")

    async def _release(self, dependency: Resource) -> None:
        """Without these labels the control plane does not manage the object in the cluster."""
        try:
            found = await self._cluster.client.get(dependency.there.gvr, dependency.name, dependency.namespace)
        except NotFound:
            return
        labels = found["metadata"].get("labels") or {}
        kept = {key: value for key, value in labels.items() if key not in _MEMBER_LABELS}
        if len(kept) != len(labels):
            await self._cluster.client.update(
                dependency.there.gvr, {**found, "metadata": {**found["metadata"], "labels": kept}}
            )


def _named(catalog: Catalog, word: str) -> Mapping:
    found = catalog.named(word)
    if found is None:
        raise connect.failure(f'the server doesn\'t have a resource type "{word}"')
    return found


def tidied(obj: Obj) -> Obj:
    """Return the object without cluster-specific fields; conflicts in the cluster are resolved by overwriting."""
    result = pruned(obj, keep_ttl=True)
    metadata = result["metadata"]
    annotations = {CONFLICT_RESOLUTION: "overwrite", **(metadata.get("annotations") or {})}
    return {**result, "metadata": {**metadata, "annotations": annotations}}
