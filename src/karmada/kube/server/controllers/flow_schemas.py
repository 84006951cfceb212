"""FlowSchemas report whether their priority level is missing: the condition Dangling, as kubectl's MISSINGPL shows it.

A schema without its level takes no requests, so its author must be able to see it. The levels that a server cannot do
without are never missing, whether or not their objects exist.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.meta import get_condition, set_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key, key_of

_GROUP = "flowcontrol.apiserver.k8s.io"
SCHEMAS = GVR(_GROUP, "v1", "flowschemas")
LEVELS = GVR(_GROUP, "v1", "prioritylevelconfigurations")
MANDATORY_LEVELS = frozenset({"exempt", "catch-all"})
MANAGER = "api-priority-and-fairness-config-consumer-v1"
DANGLING = "Dangling"
_BY_LEVEL = "priority level"


def level_of(schema: Obj) -> str:
    return str(((schema.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name") or "")


def dangling_condition(level: str, *, exists: bool) -> Obj:
    text = "and it exists" if exists else "but there is no such object"
    return {
        "type": DANGLING,
        "status": "False" if exists else "True",
        "reason": "Found" if exists else "NotFound",
        "message": f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" {text}',
    }


class FlowSchemaStatus(Reconciler):
    name = "flowschema-status"

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._schemas = informers.of(SCHEMAS, indexes={_BY_LEVEL: lambda schema: (level_of(schema),)})
        self._levels = informers.of(LEVELS)
        self.watches = (
            Watch(SCHEMAS),
            Watch(LEVELS, on=("ADDED", "DELETED"), map_to=self._schemas_of_level),
        )

    def _schemas_of_level(self, level: Obj) -> Iterable[Key]:
        return [key_of(schema) for schema in self._schemas.by_index(_BY_LEVEL, level["metadata"]["name"])]

    async def reconcile(self, key: Key) -> Result:
        schema = self._schemas.get(key)
        if schema is None:
            return Done
        level = level_of(schema)
        exists = level in MANDATORY_LEVELS or self._levels.get(Key("", level)) is not None
        try:
            await report_level(self._client, schema, exists=exists, now=self._clock.now())
        except NotFound:
            return Done  # deleted meanwhile
        return Done


async def report_level(client: Client, schema: Obj, *, exists: bool, now: float) -> Obj:
    """Write the condition unless the schema has it; the schema with it."""
    wanted = dangling_condition(level_of(schema), exists=exists)
    had = get_condition((schema.get("status") or {}).get("conditions"), DANGLING)
    if had is not None and all(had.get(field) == value for field, value in wanted.items()):
        return schema
    applied = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "FlowSchema",
        "metadata": {"name": schema["metadata"]["name"], "uid": schema["metadata"]["uid"]},
        "status": {"conditions": set_condition([had] if had else [], wanted, now)},
    }
    return await client.apply(SCHEMAS, applied, field_manager=MANAGER, force=True, subresource="status")
