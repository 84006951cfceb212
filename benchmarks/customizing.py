"""A kind of its own in a control plane and its members, and all that is declared about it in Lua."""

from __future__ import annotations

import asyncio
from typing import Final

from benchmarks.objects import KINDS, WEBS
from benchmarks.planes import Plane
from karmada.api.cluster import Cluster
from karmada.api.config import ResourceInterpreterCustomization
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer

CRDS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_SERVED_SECONDS: Final = 120.0
SCRIPTS: Final = {
    "replicaResource": """
local kube = require("kube")
function GetReplicas(obj)
  return obj.spec.replicas, kube.accuratePodRequirements(obj.spec.template)
end""",
    "replicaRevision": """
function ReviseReplica(obj, desiredReplica)
  obj.spec.replicas = desiredReplica
  return obj
end""",
    "componentResource": """
local kube = require("kube")
function GetComponents(obj)
  return {{name = "web", replicas = obj.spec.replicas,
    replicaRequirements = kube.accuratePodRequirements(obj.spec.template)}}
end""",
    "retention": """
function Retain(desiredObj, observedObj)
  desiredObj.spec.paused = observedObj.spec.paused
  return desiredObj
end""",
    "statusReflection": """
function ReflectStatus(observedObj)
  local status = observedObj.status or {}
  return {replicas = status.replicas or 0, readyReplicas = status.readyReplicas or 0}
end""",
    "statusAggregation": """
function AggregateStatus(desiredObj, statusItems)
  local replicas, ready = 0, 0
  for i = 1, #(statusItems or {}) do
    local status = statusItems[i].status
    if status ~= nil then
      replicas = replicas + (status.replicas or 0)
      ready = ready + (status.readyReplicas or 0)
    end
  end
  desiredObj.status = {replicas = replicas, readyReplicas = ready}
  return desiredObj
end""",
    "healthInterpretation": """
function InterpretHealth(observedObj)
  return observedObj.status ~= nil and observedObj.status.readyReplicas == observedObj.spec.replicas
end""",
    "dependencyInterpretation": """
local kube = require("kube")
function GetDependencies(desiredObj)
  return kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace)
end""",
}


def definition() -> Obj:
    _api_version, kind = KINDS[WEBS]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": WEBS.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": WEBS.resource, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{WEBS.resource}.{WEBS.group}"},
        "spec": {"group": WEBS.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def customization() -> Obj:
    api_version, kind = KINDS[WEBS]
    return {
        "apiVersion": ResourceInterpreterCustomization.gvk.api_version,
        "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": WEBS.resource},
        "spec": {
            "target": {"apiVersion": api_version, "kind": kind},
            "customizations": {field: {"luaScript": script} for field, script in SCRIPTS.items()},
        },
    }


async def customize(plane: Plane) -> None:
    """Until the control plane knows that all members serve the kind."""
    for client in (plane.control, *(member.client for member in plane.members)):
        await client.create(CRDS, definition())
    await plane.control.create(ResourceInterpreterCustomization.gvr, customization())
    informer = Informer(plane.control, Cluster.gvr)
    informer.start()
    try:
        async with asyncio.timeout(_SERVED_SECONDS):
            await informer.until(lambda: len(informer) > 0 and all(map(_serves, informer.list())))
    finally:
        await informer.stop()


def _serves(cluster: Obj) -> bool:
    enabled = (cluster.get("status") or {}).get("apiEnablements") or ()
    return any(group["groupVersion"] == WEBS.api_version for group in enabled)
