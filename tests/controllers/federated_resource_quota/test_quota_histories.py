"""After any history, the total of a quota is what a recount of the stored bindings gives.

Writes are refused, lose races, overlap, or fail after they were charged, and controllers restart. As long as no write
is lost and no limit is lowered, what is stored never exceeds a limit, either.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from karmada.admission.binding_quota import total, usage
from karmada.api.policy import FederatedResourceQuota
from karmada.api.work import ResourceBinding
from karmada.controllers.context import Settings
from karmada.controllers.federated_resource_quota.charges import SETTLE_SECONDS
from karmada.features import default_gates
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.server.storage.interface import StoreUnavailable
from karmada.rehearsal.event_loop import RehearsalLoop
from karmada.rehearsal.fleet import RehearsalFleet

BINDINGS, QUOTAS = ResourceBinding.gvr, FederatedResourceQuota.gvr
LIMITS: dict[str, Obj] = {"a": {"cpu": "6", "memory": "1Gi"}, "b": {"cpu": "8"}}
_numbers = count()


class History:
    """What happens in one namespace."""

    def __init__(self, fleet: RehearsalFleet) -> None:
        self.fleet, self.client = fleet, fleet.client
        self.namespace = f"n{next(_numbers)}"
        self.slow = False
        """Bindings are in flight for a while before they are stored."""
        self.losing = False
        """The next writes of bindings are lost after they were admitted."""
        self.sound = True
        """Nothing was lost, and no limit lowered."""
        self._write = fleet.server.store.write

    async def begin(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        for name, overall in LIMITS.items():
            head = {"apiVersion": FederatedResourceQuota.gvk.api_version, "kind": "FederatedResourceQuota"}
            metadata = {"name": name, "namespace": self.namespace}
            await self.client.create(QUOTAS, {**head, "metadata": metadata, "spec": {"overall": overall}})
        self.fleet.server.store.write = self._stored  # type: ignore[method-assign]

    async def end(self) -> None:
        self.fleet.server.store.write = self._write  # type: ignore[method-assign]
        await self.client.delete_collection(BINDINGS, self.namespace)
        await self.client.delete_collection(QUOTAS, self.namespace)

    async def _stored(self, key: str, value: bytes | None, *, expected: int, obj: Obj | None = None) -> int:
        """Gives way to others first, as a store on disk does."""
        await asyncio.sleep(0)
        if value is not None and f"resourcebindings/{self.namespace}/" in key:
            if self.slow:
                await self.fleet.clock.sleep(SETTLE_SECONDS / 2)
            if self.losing:
                raise StoreUnavailable("lost")
        return await self._write(key, value, expected=expected, obj=obj)

    # steps

    async def play(self, step: tuple[Any, ...]) -> None:
        match step:
            case "write", *args:
                await self._put(*args)
            case "dry run", *args:
                await self._put(*args, dry_run=True)
            case "lose", *args:
                self.losing, self.sound = True, False
                await self._put(*args)
                self.losing = False
            case "together", steps:
                self.slow = True
                await asyncio.gather(*map(self.play, steps))
                self.slow = False
            case "delete", name:
                await self._try(self.client.delete(BINDINGS, name, self.namespace))
            case "limit", name, cpu:
                self.sound = False
                await self.client.patch(QUOTAS, name, self.namespace, {"spec": {"overall": {"cpu": cpu}}})
            case "wait", seconds:
                await self.fleet.run(seconds)
            case ("restart",):
                await self.fleet.stop_controllers()
                await self.fleet.start_controllers()

    async def _put(
        self, name: str, clusters: list[int], request: Obj, components: int, *, dry_run: bool = False
    ) -> None:
        needs = {"resourceRequest": request}
        spec: Obj = {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "clusters": [{"name": f"m{n}", "replicas": replicas} for n, replicas in enumerate(clusters)],
            "replicaRequirements": needs,
            "components": [{"name": f"c{n}", "replicas": 1, "replicaRequirements": needs} for n in range(components)],
        }
        head = {"apiVersion": ResourceBinding.gvk.api_version, "kind": "ResourceBinding"}
        obj = {**head, "metadata": {"name": name, "namespace": self.namespace}, "spec": spec}
        there = self.fleet.server.cache.get(BINDINGS.group_resource, self.namespace, name)
        if there is None:
            await self._try(self.client.create(BINDINGS, obj, dry_run=dry_run))
        else:
            patch = {"spec": {**spec, "replicaRequirements": {"resourceRequest": {"memory": None, **request}}}}
            await self._try(self.client.patch(BINDINGS, name, self.namespace, patch, dry_run=dry_run))

    async def _try(self, request: Any) -> None:
        """Time passes meanwhile: a charge that lost a race pauses. The server may refuse it, in any way it does."""
        doing = asyncio.ensure_future(request)
        while not doing.done():
            await self.fleet.run(0.01)
        with contextlib.suppress(ApiError):
            await doing

    # what is there

    def recount(self, overall: Obj) -> Obj:
        found: dict[str, Quantity] = {}
        for binding in self.fleet.server.cache.list(BINDINGS.group_resource, self.namespace):
            for name, amount in total({}, usage(binding)).items():
                found[name] = found.get(name, Quantity(0)) + amount
        return {name: str(amount) for name, amount in total(found, {}).items() if name in overall}

    def check_limits(self) -> None:
        for name, overall in LIMITS.items():
            for resource, amount in self.recount(overall).items():
                assert Quantity.parse(amount) <= Quantity.parse(overall[resource]), (name, resource)

    def check_totals(self) -> None:
        for name in LIMITS:
            quota = self.fleet.server.cache.get(QUOTAS.group_resource, self.namespace, name)
            assert quota is not None
            assert quota["status"]["overallUsed"] == self.recount(quota["spec"]["overall"])
            assert quota["status"]["overall"] == quota["spec"]["overall"]


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RehearsalLoop, RehearsalFleet]]:
    gates = default_gates()
    gates.set("FederatedQuotaEnforcement=true")
    controllers = ("federatedResourceQuotaEnforcement", "federatedResourceQuotaStatus")
    fleet = RehearsalFleet(tmp_path_factory.mktemp("histories"), Settings(controllers=controllers), gates)
    loop = RehearsalLoop()
    loop.run_until_complete(fleet.start())
    loop.run_until_complete(fleet.start_controllers())
    yield loop, fleet
    loop.run_until_complete(fleet.stop())
    loop.close()


names = st.sampled_from("xyz")
requests = st.sampled_from([{"cpu": "1"}, {"cpu": "300m", "memory": "1500m"}, {"cpu": "2"}, {"memory": "600Mi"}])
puts = (names, st.lists(st.integers(0, 2), max_size=3), requests, st.integers(0, 2))
write = st.tuples(st.just("write"), *puts)
delete = st.tuples(st.just("delete"), names)
step = st.one_of(
    write,
    delete,
    st.tuples(st.just("lose"), *puts),
    st.tuples(st.just("dry run"), *puts),
    st.tuples(st.just("together"), st.lists(st.one_of(write, delete), min_size=2, max_size=3)),
    st.tuples(st.just("limit"), st.sampled_from(sorted(LIMITS)), st.sampled_from(["2", "5"])),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 1.0, SETTLE_SECONDS + 1])),
    st.just(("restart",)),
)


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(step, min_size=3, max_size=12))
def test_the_total_is_that_of_the_stored_bindings(
    playing: tuple[RehearsalLoop, RehearsalFleet], steps: list[tuple[Any, ...]]
) -> None:
    loop, fleet = playing
    loop.run_until_complete(_played(fleet, steps))


async def _played(fleet: RehearsalFleet, steps: list[tuple[Any, ...]]) -> None:
    history = History(fleet)
    await history.begin()
    try:
        for one in steps:
            await history.play(one)
            if history.sound:
                history.check_limits()
        await fleet.run(3 * SETTLE_SECONDS)
        history.check_totals()
    finally:
        await history.end()
        await fleet.run(1)
