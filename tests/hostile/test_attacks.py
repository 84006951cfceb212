"""All attacks of one tenant at once: no turn of the loop is long, nobody else is refused, nothing breaks.

For a minute, against a process of its own, and with the times that others see: `make hostile`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from karmada.kube.objects import doc
from tests.hostile.attacks import ATTACKS, BLUE, RED, UNREAD, Attack, prepare
from tests.hostile.plane import hostile_plane
from tests.hostile.sending import Answer
from tests.hostile.turns import MeteredLoop, longest_turn

ROUNDS = 2
WATCHES = 20
PATHS = ("/readyz", f"/api/v1/namespaces/{BLUE}/configmaps/mine")
TURN_SECONDS = 0.5
"""CPU time at the reference speed of one turn, in which a part of each attack may be done."""


@pytest.fixture(autouse=True)
def _no_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    """It encodes every shared object again, on the loop."""
    monkeypatch.setattr(doc, "_detecting", False)


def test_one_tenant_holds_up_no_other(folder: Path) -> None:
    async def check() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
        async with hostile_plane(folder) as plane:
            await asyncio.to_thread(prepare, plane.sender, 200, 2, 20_000)
            red, blue = plane.sender.as_user(RED), plane.sender.as_user(BLUE)

            def play(attack: Attack) -> Sequence[Answer]:
                return [answer for number in range(ROUNDS) for answer in attack(red, number)]

            held = [await asyncio.to_thread(red.unread, UNREAD) for _ in range(WATCHES)]
            with longest_turn() as turn:
                attacks = [asyncio.create_task(asyncio.to_thread(play, attack)) for attack in ATTACKS]
                others: list[int] = []
                while not others or not all(task.done() for task in attacks):
                    others += [(await asyncio.to_thread(blue, "GET", path)).code for path in PATHS]
                answers = [answer for task in attacks for answer in await task]
            for one in held:
                one.close()
            assert set(others) == {200}
            assert [answer.body[:300] for answer in answers if answer.code >= 500] == []
            assert turn.seconds < TURN_SECONDS, turn.where

    with asyncio.Runner(loop_factory=MeteredLoop) as runner:
        runner.run(check())
