"""The shape of a Kubernetes object in this code base: a plain dict, shared and read-only once it left its maker."""

from collections.abc import Callable
from typing import Any, TypeAlias

Obj: TypeAlias = dict[str, Any]
Parse: TypeAlias = Callable[[bytes], Obj]
"""Makes an object, or a part of it, of its bytes."""
