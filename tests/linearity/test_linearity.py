"""No request costs more than in proportion to its size, in time and in memory, and none holds up the loop.

CPU time is measured, not the clock, and the least of several runs counts: the tests do not depend on what else runs.
"""

from __future__ import annotations

import gc
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.linearity.measuring import held_up, memory, parsed_size, seconds
from tests.linearity.setting import prepare
from tests.linearity.shapes import SHAPES, Sent, Shape

SMALLEST = 16_000
"""Bytes of the smallest request of a shape; the largest has eight times as many."""
EXPONENT = 1.2
NOISE_SECONDS = 0.003
STALL_SECONDS = 0.25
STALL_BYTES = 250_000
MEMORY_FACTOR = 20
MEMORY_BYTES = 16 << 20
"""What any request may take, however small: YAML is refused only after so many values of it."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    server = ApiServer(ServerConfig(data_dir=tmp_path, storage="memory://", port=0))
    await server.start()
    await prepare(server)
    gc.collect()
    gc.freeze()  # each measurement begins with a collection, which need not examine what all tests have left
    yield server
    await server.stop()


async def exponent(server: ApiServer, made: Shape, repeats: int) -> float:
    """Time grows as size to the power of this, judged from the smallest to the largest size."""
    times = [max(NOISE_SECONDS, await seconds(server, made(SMALLEST * factor), repeats)) for factor in (1, 2, 4, 8)]
    return math.log(times[-1] / times[0], 8)


async def test_time_grows_no_faster_than_the_request(server: ApiServer) -> None:
    found = {}
    for name, made in SHAPES.items():
        grows = await exponent(server, made, 1)
        for repeats in (3, 5):
            if grows > EXPONENT:
                grows = min(grows, await exponent(server, made, repeats))
        if grows > EXPONENT:
            found[name] = round(grows, 2)
    assert not found


async def test_memory_stays_in_proportion_to_the_request(server: ApiServer) -> None:
    found = {}
    for name, made in SHAPES.items():
        sent = made(2 * SMALLEST)
        held = await memory(server, sent)
        if held > MEMORY_BYTES + MEMORY_FACTOR * parsed_size(sent):
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
