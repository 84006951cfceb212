"""Fields that no step of a create reads but for their form: objects that differ in nothing else are stored alike.

A kind of which many are created at once (Events) names its own. The name of an object is free in any kind, within the
rule for names.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import TypeAlias


class Free(Enum):
    TEXT = auto()
    """That is not empty."""
    UUID = auto()
    """In lower case."""
    TIME = auto()
    """In whole seconds, as the API prints it."""
    NUMBER = auto()
    """Greater than 0, of 32 bits."""
    NAMESPACE = auto()
    """Free as long as it is that of the object; need not be there."""


FreeFields: TypeAlias = Mapping[str, Mapping[str, Free]]
"""By the member of the object that they are in; the empty one is the object itself."""
