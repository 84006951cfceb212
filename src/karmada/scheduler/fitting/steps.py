"""Amounts of resources in the steps that suggestions count in: thousandths of cpu, mebibytes, whole numbers."""

from __future__ import annotations

from karmada.estimator.amounts import CPU
from karmada.kube.objects.quantity import Format, Quantity

_MEBI = 2**20
_BYTES = ("memory", "ephemeral-storage", "hugepages-")


def of_steps(name: str, steps: int) -> Quantity:
    if name == CPU:
        return Quantity.of_milli(steps)
    if name.startswith(_BYTES):
        return Quantity.of(steps * _MEBI, Format.BINARY_SI)
    return Quantity.of(steps)


def steps_in(name: str, quantity: Quantity) -> int:
    """Return how many whole steps it takes to have at least so much."""
    if name == CPU:
        return quantity.milli()
    value = quantity.value()
    return -(-value // _MEBI) if name.startswith(_BYTES) else value
