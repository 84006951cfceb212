"""The shape of a Kubernetes object in this code base: a plain dict, shared and read-only once it left its maker."""

from typing import Any, TypeAlias

Obj: TypeAlias = dict[str, Any]
