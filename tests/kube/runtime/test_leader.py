from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import ServiceUnavailable
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.runtime.leader import LeaderElector
from tests.support.cases import cases
from tests.support.fake_api import FakeApi, FakeTransport


class Candidate:
    """A process that runs for the lease, again and again."""

    def __init__(self, api: FakeApi, clock: FakeClock, name: str) -> None:
        self.connected = self.answered = True
        transport = FakeTransport(api)
        original = transport.call

        async def call(request: Call) -> Any:
            if not self.connected:
                raise ConnectionFailed("cut off")
            answer = await original(request)
            if not self.answered:
                await asyncio.Event().wait()
            return answer

        transport.call = call  # type: ignore[method-assign,assignment]
        self.elector = LeaderElector(Client(transport), "lock", "ns", name, clock=clock)
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            await self.elector.acquire()
            await self.elector.hold()

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_the_first_candidate_leads_and_writes_the_lease_as_kubernetes_does(
    fake: FakeApi, clock: FakeClock
) -> None:
    one = Candidate(fake, clock, "one")
    await clock.advance(1)
    assert one.elector.leading
    lease = fake.objects[(LEASES, "ns", "lock")]
    assert lease["spec"] == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "renewTime": "2023-11-14T22:13:20.000000Z",
    }
    await clock.advance(3)
    renewed = fake.objects[(LEASES, "ns", "lock")]["spec"]
    assert renewed["acquireTime"] == "2023-11-14T22:13:20.000000Z"
    assert renewed["renewTime"] > "2023-11-14T22:13:21"
    await one.kill()


async def test_a_killed_leader_is_replaced_within_the_lease_time(fake: FakeApi, clock: FakeClock) -> None:
    one = Candidate(fake, clock, "one")
    await clock.advance(1)
    two = Candidate(fake, clock, "two")
    await clock.advance(60)
    assert one.elector.leading
    assert not two.elector.leading
    assert two.elector.leader == "one"
    await one.kill()
    started = clock.monotonic()
    while not two.elector.leading:
        await clock.advance(0.5)
    assert 10 <= clock.monotonic() - started <= 15 + 2.4 + 0.5
    assert fake.objects[(LEASES, "ns", "lock")]["spec"]["leaseTransitions"] == 1
    await two.kill()


async def test_a_released_lease_is_taken_at_the_next_try(fake: FakeApi, clock: FakeClock) -> None:
    one, two = Candidate(fake, clock, "one"), None
    await clock.advance(1)
    two = Candidate(fake, clock, "two")
    await clock.advance(10)
    one.task.cancel()
    await one.elector.release()
    assert not one.elector.leading
    await clock.advance(5)
    assert two.elector.leading
    await two.kill()


async def test_a_lease_is_released_although_a_renewal_was_cut_off_before_its_answer(
    fake: FakeApi, clock: FakeClock
) -> None:
    one = Candidate(fake, clock, "one")
    await clock.advance(1)
    one.answered = False
    await clock.advance(3)
    await one.kill()
    one.answered = True
    await one.elector.release()
    assert fake.objects[(LEASES, "ns", "lock")]["spec"]["holderIdentity"] == ""


@cases({"holderIdentity": "thief"}, {"renewTime": "2023-11-14T22:13:22.000000Z"})
async def test_a_lease_that_another_wrote_stays(spec: dict[str, str], fake: FakeApi, clock: FakeClock) -> None:
    """Another can have the same identity, too."""
    one = Candidate(fake, clock, "one")
    await clock.advance(1)
    await one.kill()
    await Client(FakeTransport(fake)).patch(LEASES, "lock", "ns", {"spec": spec})
    await one.elector.release()
    assert fake.objects[(LEASES, "ns", "lock")]["spec"]["holderIdentity"] in ("one", "thief")


async def test_a_leader_that_is_cut_off_stops_believing_before_another_starts(fake: FakeApi, clock: FakeClock) -> None:
    one = Candidate(fake, clock, "one")
    await clock.advance(1)
    two = Candidate(fake, clock, "two")
    await clock.advance(5)
    one.connected = False
    gap = 0
    while not two.elector.leading:
        await clock.advance(0.1)
        gap += not one.elector.leading
        assert not (one.elector.leading and two.elector.leading)
    assert gap > 10
    one.connected = True
    await clock.advance(30)
    assert not one.elector.leading
    assert one.elector.leader == "two"
    await one.kill()
    await two.kill()


async def test_a_short_outage_does_not_cost_the_lease(fake: FakeApi, clock: FakeClock) -> None:
    one = Candidate(fake, clock, "one")
    await clock.advance(1)
    fake.fail = lambda _: ServiceUnavailable("down")
    await clock.advance(7)
    fake.fail = lambda _: None
    await clock.advance(4)
    assert one.elector.leading
    assert fake.objects[(LEASES, "ns", "lock")]["spec"]["leaseTransitions"] == 0
    await one.kill()


async def test_a_request_that_hangs_counts_as_failed(fake: FakeApi, clock: FakeClock) -> None:
    one = Candidate(fake, clock, "one")
    await clock.advance(1)
    never = asyncio.Event()

    async def hang(call: Call) -> None:
        await never.wait()

    fake.delay = hang
    await clock.advance(11)
    assert not one.elector.leading
    fake.delay = None
    await clock.advance(30)
    assert one.elector.leading
    await one.kill()


async def test_a_lease_counts_from_before_the_renewal_however_late_its_answer_comes(
    fake: FakeApi, clock: FakeClock
) -> None:
    """The server has written it at once, so that is when the time of the others began."""
    transport = FakeTransport(fake)
    original, late = transport.call, [6.0]

    async def call(request: Call) -> Any:
        answer = await original(request)
        await clock.sleep(late[0])
        return answer

    transport.call = call  # type: ignore[method-assign,assignment]
    elector = LeaderElector(Client(transport), "lock", "ns", "me", clock=clock)
    acquiring = asyncio.ensure_future(elector.acquire())
    for _ in range(13):  # a read and a write
        await clock.advance(1)
    assert acquiring.done()
    assert not elector.leading, "it took longer than the renew deadline"
    late[0] = 0
    assert await elector.try_acquire()
    late[0] = 6
    holding = asyncio.ensure_future(elector.hold())
    for _ in range(8):
        await clock.advance(1)
    renewed = clock.monotonic()
    late[0] = 60
    while elector.leading:
        await clock.advance(0.1)
    assert clock.monotonic() - renewed < 10 - 5
    holding.cancel()


@cases((10, 10, 2), (15, 2, 2), (15, 10, 0), ids=["lease", "deadline", "retry"])
async def test_times_that_could_give_two_leaders_are_refused(
    lease: float, deadline: float, retry: float, client: Client
) -> None:
    with pytest.raises(ValueError, match="lease_duration > renew_deadline"):
        LeaderElector(client, "l", "n", "i", lease_duration=lease, renew_deadline=deadline, retry_period=retry)


STEPS = ["cut", "join", "kill", "slow", "ahead", "back", "wait"]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(STEPS)), max_size=12))
def test_at_no_moment_do_two_candidates_believe_to_lead(steps: list[tuple[int, str]]) -> None:
    async def run() -> None:
        fake, clock = FakeApi(), FakeClock()
        pause = random.Random(1)

        async def slow(call: Call) -> None:
            await clock.sleep(pause.random() * 8)

        candidates = [Candidate(fake, clock, name) for name in "abc"]
        for number, step in [*steps, (0, "wait")]:
            candidate = candidates[number]
            if step == "kill":
                await candidate.kill()
                candidates[number] = Candidate(fake, clock, f"{candidate.elector.identity}x")
            elif step == "slow":
                fake.delay = None if fake.delay else slow
            elif step in ("ahead", "back"):
                clock.jump(365 * 86400 if step == "ahead" else -365 * 86400)
            elif step != "wait":
                candidate.connected = step == "join"
            for _ in range(40):
                await clock.advance(0.5)
                assert sum(c.elector.leading for c in candidates) <= 1
        fake.delay = None
        for candidate in candidates:
            candidate.connected = True
        await clock.advance(60)
        assert sum(c.elector.leading for c in candidates) == 1
        for candidate in candidates:
            await candidate.kill()

    asyncio.run(run())


async def test_a_lease_of_the_same_identity_is_taken_over_at_once(fake: FakeApi, clock: FakeClock) -> None:
    first = Candidate(fake, clock, "the store's")
    await clock.advance(1)
    await first.kill()
    again = LeaderElector(Client(FakeTransport(fake)), "lock", "ns", "the store's", clock=clock)
    assert await again.try_acquire()
    assert fake.objects[(LEASES, "ns", "lock")]["spec"]["leaseTransitions"] == 0
    other = LeaderElector(Client(FakeTransport(fake)), "lock", "ns", "another", clock=clock)
    assert not await other.try_acquire()


async def test_a_held_lease_is_renewed_every_renew_period_and_after_a_failure_sooner(
    fake: FakeApi, clock: FakeClock
) -> None:
    transport = FakeTransport(fake)
    original, writes, broken = transport.call, [], [False]

    async def call(request: Call) -> Any:
        if request.method == "PUT":
            writes.append(clock.monotonic())
        if broken[0]:
            raise ServiceUnavailable("not now")
        return await original(request)

    transport.call = call  # type: ignore[method-assign,assignment]
    times: Any = {"lease_duration": 60.0, "renew_deadline": 40.0, "renew_period": 20.0}
    elector = LeaderElector(Client(transport), "lock", "ns", "me", clock=clock, **times)
    assert await elector.try_acquire()
    began = clock.monotonic()
    holding = asyncio.ensure_future(elector.hold())
    for _ in range(41):
        await clock.advance(1)
    assert [moment - began for moment in writes] == [20, 40]
    broken[0] = True
    for _ in range(21):
        await clock.advance(1)
    broken[0] = False
    for _ in range(4):
        await clock.advance(1)
    assert [moment - began for moment in writes[2:]] == [60, 62, 64]
    assert elector.leading
    holding.cancel()


def test_a_renewal_leaves_time_for_a_second_try() -> None:
    with pytest.raises(ValueError, match="for a second try"):
        LeaderElector(Client(FakeTransport(FakeApi())), "lock", "ns", "me", renew_period=9)
