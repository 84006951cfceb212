"""Reading the body of an answer up to a limit: the other side may be broken, or mean harm, and memory is everybody's.

What counts is what the body is after decompression, which aiohttp does in small steps, so that neither an endless body
nor a small one that unfolds to gigabytes is ever held in memory.
"""

from __future__ import annotations

import aiohttp

from karmada.kube.client.limits import readable


class TooLarge(aiohttp.ClientError):
    """More was sent than anybody has a use for."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"{what} is larger than {readable(most)}")


async def read_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return the whole body; TooLarge, and no further use of the connection, when it is more than `most` bytes."""
    pieces: list[bytes] = []
    size = 0
    while piece := await response.content.readany():
        size += len(piece)
        if size > most:
            response.close()
            raise TooLarge("the response", most)
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
