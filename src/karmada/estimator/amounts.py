"""Quantities as the integers that estimates count in: thousandths for cpu, whole units for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from karmada.kube.objects.quantity import ZERO, Quantity

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[np.int64]
    Bools: TypeAlias = npt.NDArray[np.bool_]
else:  # for annotations alone: an agent, which grades its nodes and computes no estimates, would load 11 MiB for them
    Ints = Bools = Any

CPU = "cpu"
PODS = "pods"
MOST = 2**63 - 1
"""Largest number that an array can hold."""


def amount(name: str, quantity: Quantity) -> int:
    """In the unit the resource is counted in."""
    return min(quantity.milli() if name == CPU else quantity.value(), MOST)


def quantity(value: Any) -> Quantity:
    """Return what cannot be read counts as nothing."""
    try:
        return Quantity.parse(value)
    except ValueError:
        return ZERO
