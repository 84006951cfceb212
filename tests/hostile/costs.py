"""What objects with one large field cost: the longest turn of the loop at each step, and whether calls grow faster."""

from __future__ import annotations

import asyncio
import contextlib
import cProfile
import re
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import orjson

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.aside import ASIDE
from tests.hostile.growing import NAME, Growth, Repairs, first, grown, has_place, with_one
from tests.hostile.plane import HostilePlane
from tests.hostile.sending import Answer
from tests.hostile.turns import Turn, longest_turn

TURN_SECONDS = 0.05
"""CPU time of one turn, at the reference speed."""
RATIO = 3.0
"""Calls for twice as many items: linear is 2."""
FORMS = {
    "JSON": "application/json",
    "YAML": "application/yaml",
    "Table": "application/json;as=Table;g=meta.k8s.io;v=v1",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "partial metadata": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
}
_MERGE, _APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
_TOO_LARGE = (400, 403, 413, 422)
_AT_MOST = re.compile(r"must have at most (\d+) items")
_REPAIRS = 30
_HALVINGS = 8


@dataclass
class Finding:
    growth: str
    step: str
    what: str

    def __str__(self) -> str:
        return f"{self.growth}: {self.step}: {self.what}"


@dataclass
class Outcome:
    findings: list[Finding] = field(default_factory=list)
    accepted: int = 0
    """Bytes of the object that was stored; 0: refused, at any size."""
    refusal: str = ""


class Costs:
    """Cases of one plane, one after the other."""

    def __init__(self, plane: HostilePlane, size: int, turn: float = TURN_SECONDS) -> None:
        """`size`: bytes of the larger object; `turn`: the longest one that is no finding."""
        self._plane = plane
        self._size = size
        self._turn = turn
        self._valid: dict[Resource, Obj | None] = {}

    async def of(self, growth: Growth) -> Outcome:
        outcome = Outcome()
        one = await self._valid_with_one(growth, outcome)
        if not has_place(one, growth):
            return outcome
        per_item = max(1, len(orjson.dumps(grown(one, growth, 101))) - len(orjson.dumps(grown(one, growth, 1)))) / 100
        count = max(2, int(self._size / per_item))
        for _ in range(_HALVINGS):
            large = grown(one, growth, count)
            slow, answer = await self._steps(growth, large)
            outcome.findings += slow
            if answer.code == 201:
                outcome.accepted = len(orjson.dumps(large))
            else:
                outcome.refusal = f"{answer.code} {answer.json().get('message', '')[:300]}"
            if answer.code not in _TOO_LARGE:
                break
            limit = _AT_MOST.search(outcome.refusal)
            count = int(limit[1]) if limit and int(limit[1]) < count else count // 2
        few = min(count, max(2, count * 60_000 // self._size))
        outcome.findings += await self._superlinear(growth, one, few)
        return outcome

    # a valid object

    async def _valid_with_one(self, growth: Growth, outcome: Outcome) -> Obj:
        resource = growth.resource
        if resource not in self._valid:
            self._valid[resource], _ = await self._repaired(resource, first(resource))
        one = with_one(self._valid[resource] or first(resource), growth)
        valid, outcome.refusal = await self._repaired(resource, copy_json(one))
        return valid if valid is not None and has_place(valid, growth) else one

    async def _repaired(self, resource: Resource, obj: Obj) -> tuple[Obj | None, str]:
        repairs, message = Repairs(resource), ""
        for _ in range(_REPAIRS):
            answer = await self._plane.send("POST", f"{_collection(resource)}?dryRun=All", obj)
            if answer.code == 201:
                return obj, ""
            status = answer.json()
            message = status.get("message", "")
            if not repairs.repair(obj, status):
                break
        return None, message

    # turns

    async def _steps(self, growth: Growth, obj: Obj) -> tuple[list[Finding], Answer]:
        """Do everything with an object; return the steps with too long a turn, and what its creation answered."""
        found: list[Finding] = []
        created = Answer(0, b"")
        async for step, turn, answer in self._measured(growth.resource, obj):
            if step == "create":
                created = answer
            if turn.seconds > self._turn:
                found.append(Finding(str(growth), step, f"{turn.seconds * 1000:.0f} ms in one turn: {turn.where}"))
        return found, created

    async def _measured(self, resource: Resource, obj: Obj) -> AsyncIterator[tuple[str, Turn, Answer]]:
        collection = _collection(resource)
        one = f"{collection}/{NAME}"
        body = orjson.dumps(obj)
        send = self._plane.send

        with longest_turn() as turn:
            created = await send("POST", collection, body)
            await self._plane.rest()
        yield "create", turn, created
        if created.code != 201:
            return
        try:
            small = {"metadata": {"annotations": {"small": "patch"}}}
            for step, method, path, data, media in (
                ("patch", "PATCH", one, small, _MERGE),
                ("apply in conflict", "PATCH", f"{one}?fieldManager=other", body, _APPLY),
                ("apply", "PATCH", f"{one}?fieldManager=other&force=true", body, _APPLY),
            ):
                with longest_turn() as turn:
                    answer = await send(method, path, data, media=media)
                    await self._plane.rest()
                yield step, turn, answer
            for form, accept in FORMS.items():
                for step, path in (("list", collection), ("watch", f"{collection}?watch=1"), ("get", one)):
                    if step == "get" and form == "partial metadata":
                        continue
                    with longest_turn() as turn:
                        answer = await send("GET", path, accept=accept)
                    yield f"{step} as {form}", turn, answer
        finally:
            with longest_turn() as turn:
                answer = await send("DELETE", one, {"gracePeriodSeconds": 0})
                await self._gone(one)
        yield "delete", turn, answer

    async def _gone(self, path: str) -> None:
        while (await self._plane.send("GET", path)).code != 404:
            await self._plane.send("PATCH", path, {"metadata": {"finalizers": None}}, media=_MERGE)
            await asyncio.sleep(0.01)
        await self._plane.rest()

    # calls

    async def _superlinear(self, growth: Growth, one: Obj, count: int) -> list[Finding]:
        """Compare the calls for a quarter, half and all of so many items: a step between two sizes is no growth."""
        counts = [count // 4, count // 2, count]
        if not counts[0]:
            return []
        runs = [await self._calls(growth.resource, grown(one, growth, number)) for number in counts]
        found = []
        for step in runs[-1]:
            few, some, many = (run.get(step, 0) for run in runs)
            if few and many > RATIO * some and some > RATIO * few:
                found.append(Finding(str(growth), step, f"{few}, {some}, {many} calls for {counts} items"))
        return found

    async def _calls(self, resource: Resource, obj: Obj) -> dict[str, int]:
        """Return how many functions each step calls on the loop and aside."""
        collection = _collection(resource)
        one = f"{collection}/{NAME}"
        send = self._plane.send
        found: dict[str, int] = {}
        with counting() as calls:
            created = await send("POST", collection, orjson.dumps(obj))
            await self._plane.rest()
        found["create"] = calls[0]
        if created.code == 201:
            for step, method, path, body, media in (
                ("patch", "PATCH", one, {"metadata": {"annotations": {"small": "patch"}}}, _MERGE),
                ("list", "GET", collection, None, ""),
            ):
                with counting() as calls:
                    await send(method, path, body, media=media, accept=FORMS["Table"])
                    await self._plane.rest()
                found[step] = calls[0]
            await send("DELETE", one, {"gracePeriodSeconds": 0})
            await self._gone(one)
        return found


def _collection(resource: Resource) -> str:
    root = f"/apis/{resource.gvk.api_version}" if resource.gvk.group else f"/api/{resource.gvk.version}"
    return f"{root}/namespaces/default/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


class _AtOnce(Executor):
    """Does what is to be done aside on the loop, where its calls are counted."""

    def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments, **named))
        except Exception as error:  # noqa: BLE001 - handed on
            future.set_exception(error)
        return future


@contextlib.contextmanager
def counting() -> Iterator[list[int]]:
    """Count the calls of the loop's thread, of C functions too."""
    calls = [0]
    profile = cProfile.Profile()
    thread = ASIDE._thread
    ASIDE._thread = _AtOnce()  # type: ignore[assignment]
    profile.enable()
    try:
        yield calls
    finally:
        profile.disable()
        ASIDE._thread = thread
        calls[0] = sum(entry.callcount for entry in profile.getstats())
