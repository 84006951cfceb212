"""Bodies in pieces: small parts joined, large ones divided; a client that does not read then holds few bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeAlias

from karmada.kube.runtime.time_slice import TimeSlice

PIECE = 64 * 1024
"""Bytes that are handed over at once, and that a connection may buffer before its writer waits."""

Bytes: TypeAlias = "bytes | memoryview"
Part: TypeAlias = "Bytes | Callable[[], Awaitable[Bytes]]"
"""Bytes, or what makes them aside."""


async def in_pieces(parts: Iterable[Part]) -> AsyncGenerator[Bytes, None]:
    """Yield the bytes of the parts in pieces of at most PIECE; large parts are not copied."""
    turn = TimeSlice()
    small: list[Bytes] = []
    size = 0
    for made in parts:
        if turn.is_over():
            await turn.next()
        part = await made() if callable(made) else made
        if small and size + len(part) > PIECE:
            yield b"".join(small)
            small, size = [], 0
        if len(part) <= PIECE:
            small.append(part)
            size += len(part)
            continue
        for piece in divided(part):
            yield piece
    if small:
        yield small[0] if len(small) == 1 else b"".join(small)


def divided(body: Bytes) -> Iterable[memoryview]:
    """Return views of a body, each of at most PIECE."""
    view = memoryview(body)
    return (view[start : start + PIECE] for start in range(0, len(body), PIECE))
