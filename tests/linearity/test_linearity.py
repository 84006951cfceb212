"""No request costs more than in proportion to its size, in time and in memory, and none holds up the loop.

CPU time is measured, not the clock, and the least of several runs counts: the tests do not depend on what else runs.
"""

from __future__ import annotations

import gc
import math
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from karmada.kube.server.app import ApiServer
from tests.linearity.drawn import Plan, plans
from tests.linearity.measuring import held_up, memory, parsed_size, seconds
from tests.linearity.setting import prepare
from tests.linearity.shapes import APPLY, SHAPES, YAML, Sent, Shape
from tests.support.collector import free_the_dead
from tests.support.running import api_server

SMALLEST = 16_000
"""Bytes of the smallest request of a shape."""
EXPONENT = 1.2
DRAWN = int(os.environ.get("KARMADA_FUZZ_EXAMPLES", "0")) or 80
NOISE_SECONDS = 0.003
STALL_SECONDS = 0.25
STALL_BYTES = 250_000
MEMORY_FACTOR = 20
"""Times the body as Python objects. Its bytes are no measure: `{},` is three of them and an empty dict takes 64, so
that parsing alone is 21 times the body, and a container with its defaults 190 times, about as a struct in Go."""
MEMORY_BYTES = 3 << 20
"""What any request may take besides, however small: as much as the largest body."""
YAML_MEMORY_BYTES = 16 << 20
"""The same for YAML, which is refused only after so many values: aliases make more of them than there are bytes."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with api_server(tmp_path) as server:
        await prepare(server)
        free_the_dead()  # each measurement begins with a collection, which need not examine what all tests have left
        yield server
        gc.unfreeze()


async def exponent(server: ApiServer, made: Shape, factor: int) -> float:
    """Time grows as size to the power of this, judged from the smallest size to so many times as much.

    Measured again, and more exactly, while that is too much.
    """
    least = math.inf
    for repeats in (1, 3, 5):
        least = min(least, await _exponent(server, made, factor, repeats))
        if least <= EXPONENT:
            break
    return least


async def _exponent(server: ApiServer, made: Shape, factor: int, repeats: int) -> float:
    """The smallest is measured before and after: a machine may become slower in between, which is no growth."""
    sizes = (SMALLEST, SMALLEST * factor, SMALLEST)
    before, large, after = [max(NOISE_SECONDS, await seconds(server, made(size), repeats)) for size in sizes]
    return math.log(large / max(before, after), factor)


async def test_time_grows_no_faster_than_the_request(server: ApiServer) -> None:
    grows = {name: await exponent(server, made, 8) for name, made in SHAPES.items()}
    assert {name: round(found, 2) for name, found in grows.items() if found > EXPONENT} == {}


@settings(
    max_examples=DRAWN,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(plan=plans())
async def test_time_of_drawn_shapes_grows_no_faster_than_the_request(server: ApiServer, plan: Plan) -> None:
    """Of what is drawn the larger size is four times the smaller: there are many shapes."""
    found = await exponent(server, plan, 4)
    assert found <= EXPONENT, plan


async def test_memory_stays_in_proportion_to_the_request(server: ApiServer) -> None:
    found = {}
    for name, made in SHAPES.items():
        sent = made(2 * SMALLEST)
        held = await memory(server, sent)
        fixed = YAML_MEMORY_BYTES if sent.media in (YAML, APPLY) else MEMORY_BYTES
        if held > fixed and held > fixed + MEMORY_FACTOR * parsed_size(sent):  # which takes long to find out
            found[name] = held
    assert not found


async def test_no_request_holds_up_the_loop(server: ApiServer) -> None:
    found = {}
    for name, made in SHAPES.items():
        sent: Sent = made(STALL_BYTES)
        if not sent.body:
            sent = made(60_000)  # the front takes no longer line
        least = await held_up(server, sent)
        for _ in range(3):
            if least > STALL_SECONDS:
                least = min(least, await held_up(server, sent))
        if least > STALL_SECONDS:
            found[name] = round(least, 3)
    assert not found
