"""What a schema promises about the size of its values: how many elements at most, how many bytes of JSON at least.

Where a list, map or string declares no limit, the limit of a request's body bounds it: there are never more items than
the smallest one fits into it. The numbers are those by which a kube-apiserver decides, so that a rule that is accepted
here is accepted there.
"""

from __future__ import annotations

from karmada.kube.schema.node import UNSET, Node
from karmada.kube.schema.structural import Checks

REQUEST_BYTES = 3 * 1024 * 1024
_BYTES_OF_CHARACTER = 4
_LONGEST_TEXT = REQUEST_BYTES - len('""')
_TIMED = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21), "datetime": (32, 21)}
"""Longest and shortest JSON text by format."""
_SCALARS = {"boolean": len("true"), "integer": len("0"), "number": len("0")}
_NO_CHECKS = Checks()


def _checks(node: Node) -> Checks:
    return node.checks if isinstance(node.checks, Checks) else _NO_CHECKS


def _text_elements(node: Node) -> int:
    checks = _checks(node)
    if node.format in _TIMED and not node.special:
        return _TIMED[node.format][0]
    if checks.max_length is not None:
        width = 1 if node.format == "byte" and not node.special else _BYTES_OF_CHARACTER
        return max(checks.max_length, 0) * width
    if checks.enum is not None and not node.special and node.format != "byte":
        return max((len(word.encode()) for word in checks.words), default=0)
    return _LONGEST_TEXT


class SchemaSizes:
    """The sizes of one schema's places, each computed once."""

    def __init__(self) -> None:
        self._least: dict[int, int | None] = {}

    def least(self, node: Node) -> int | None:
        """Return the bytes of the smallest value; None where expressions cannot see the place."""
        key = id(node)
        if key not in self._least:
            self._least[key] = self._least_bytes(node)
        return self._least[key]

    def _least_bytes(self, node: Node) -> int | None:
        if node.special == "int-or-string":
            return len("0")
        if node.type == "string":
            return _TIMED[node.format][1] if node.format in _TIMED else len('""')
        if node.type == "array":
            return None if node.items is None or self.least(node.items) is None else len("[]")
        if node.type != "object":
            return _SCALARS.get(node.type)
        if node.values is not None:
            return None if self.least(node.values) is None else len("{}")
        return len("{}") + sum(self._field_bytes(node, name) for name in node.required)

    def _field_bytes(self, node: Node, name: str) -> int:
        """Return the fewest bytes of a field; a required one with a default need not be sent."""
        child = node.properties.get(name)
        least = None if child is None or child.default is not UNSET else self.least(child)
        return 0 if least is None else len(name) + len('"":,') + least

    def most(self, node: Node) -> int:
        """Return the number of elements of the largest value: characters, items, entries; 0 of what has none."""
        if node.special == "int-or-string" or node.type == "string":
            return _text_elements(node)
        if node.type == "array" and node.items is not None:
            return self._most_items(_checks(node).max_items, (self.least(node.items) or 0) + len(","))
        if node.type == "object" and node.values is not None:
            entry = (self.least(node.values) or 0) + len('"":,') + len("kk")
            return self._most_items(_checks(node).max_properties, entry)
        return 0

    @staticmethod
    def _most_items(declared: int | None, smallest: int) -> int:
        return (REQUEST_BYTES - len("[]")) // smallest if declared is None else max(declared, 0)

    def occurrences(self, node: Node) -> int:
        """Return how often a place can be in one object when nothing above it has a limit."""
        return REQUEST_BYTES // ((self.least(node) or 0) + len(","))
