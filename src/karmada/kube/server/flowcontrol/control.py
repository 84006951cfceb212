"""Flow control of a server: a request's FlowSchema gives it a priority level and a flow, and there it gets its seat.

Which schema a request falls under is remembered for every sort of request of a user until a schema changes.
"""

from __future__ import annotations

from typing import NamedTuple

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.memo import Memo
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from karmada.kube.server.flowcontrol.cost import actual, estimated, reads_many
from karmada.kube.server.flowcontrol.defaults import flow_schemas, priority_levels
from karmada.kube.server.flowcontrol.levels import Level, Levels
from karmada.kube.server.flowcontrol.matching import Flow, Schema, compiled
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import Result
from karmada.kube.server.watchcache.cache import Cache
from karmada.kube.server.watchcache.derived import Followed

SEATS = 600
_GROUP = "flowcontrol.apiserver.k8s.io"
SCHEMAS = GroupResource(_GROUP, "flowschemas")
LEVELS = GroupResource(_GROUP, "prioritylevelconfigurations")
_REMEMBERED = 4096


class Seat(NamedTuple):
    """The classification of a request; the uids go into the headers of its response."""

    schema: Schema
    level: Level
    flow: Flow


class FlowControl:
    def __init__(self, reader: Reader | None = None, seats: int = SEATS) -> None:
        """Without a reader, the configuration that every server begins with."""
        self._levels = Levels(seats)
        self._reader = reader
        self._fixed = compiled(flow_schemas())
        self._schemas = None if reader is None else Followed(reader, SCHEMAS, compiled)
        self._configured = None if reader is None else Followed(reader, LEVELS, self._configure)
        self._known: Memo[tuple[object, ...], Seat] = Memo(_REMEMBERED)
        self._seen: tuple[int, int] = (-1, -1)
        if reader is None:
            self._configure([])

    def _configure(self, objects: list[Obj]) -> None:
        """Levels that are missing are as they are by default: every request must find one."""
        given = {obj["metadata"]["name"] for obj in objects}
        self._levels.configure([*objects, *(obj for obj in priority_levels() if obj["metadata"]["name"] not in given)])

    @property
    def waiting(self) -> int:
        """Requests that wait for a seat."""
        return self._levels.waiting

    def classify(self, user: User, request: AuthzAttributes) -> Seat:
        schemas = self._current()
        scope = request.namespace if request.is_resource else request.path
        key = (user.name, user.groups, request.verb, request.group, request.resource, request.subresource, scope)
        found = self._known.get(key)
        if found is None:
            found = self._known.put(key, self._classify(schemas, user, request))
        return found

    def _current(self) -> list[Schema]:
        if self._schemas is None or self._configured is None:
            return self._fixed
        schemas = self._schemas.get()
        self._configured.get()
        seen = (self._schemas.generation, self._configured.generation)
        if seen != self._seen:
            self._seen = seen
            self._known.clear()
        return schemas

    def _classify(self, schemas: list[Schema], user: User, request: AuthzAttributes) -> Seat:
        for schema in [*schemas, *self._fixed]:
            level = self._levels.get(schema.level)
            if level is not None and schema.matches(user, request):
                return Seat(schema, level, schema.flow(user, request))
        raise ApiError(f"no FlowSchema matches the requests of user {user.name}")

    async def enter(self, seat: Seat, request: Request) -> int:
        """Return how many seats there are to leave afterwards; TooManyRequests when there are none to be had."""
        wanted = estimated(request, self._count(request)) if reads_many(request) else 1
        return await self._levels.enter(seat.level.name, seat.flow, wanted)

    def leave(self, seat: Seat, seats: int, request: Request, result: Result | None) -> None:
        """Give seats back, and charge what the request cost more or less than was estimated."""
        if reads_many(request):
            self._levels.charge(seat.level.name, seat.flow, actual(request, result, self._count(request)) - seats)
        self._levels.leave(seat.level.name, seats)

    def _count(self, request: Request) -> int:
        """Return how many objects there are of the requested resource, in all namespaces."""
        reader = self._reader
        return reader.count(request.info.group_resource) if isinstance(reader, Cache) else 0
