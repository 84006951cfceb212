"""What a control plane counts of itself, from its page /metrics."""

from __future__ import annotations

from karmada.kube.client.config import RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Call


async def read_metrics(plane: RestConfig) -> dict[str, float]:
    """The value of each sample, by its name and labels as they stand there."""
    transport = HttpTransport(plane)
    try:
        answer = await transport.answer(Call("GET", "/metrics", accept="text/plain"))
    finally:
        await transport.close()
    return parsed(answer.body.decode())


def parsed(page: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#"))
    return {sample: float(value) for sample, _, value in lines}
