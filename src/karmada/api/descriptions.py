"""Descriptions for `kubectl explain`, read from the source of the kinds.

A class is described by its docstring, a field by the string that stands below it. Python keeps the first and forgets
the second, so the module's source is parsed when descriptions are first used.
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from karmada.api.common import Struct


@dataclass(slots=True)
class Descriptions:
    """Of one class."""

    itself: str = ""
    fields: dict[str, str] = field(default_factory=dict)


def class_description(cls: type) -> str:
    return _of_module(cls.__module__).get(cls.__name__, _NONE).itself


def field_description(cls: type, name: str) -> str:
    """Of a field by its Python name, where the class or a base of it describes it."""
    for base in cls.__mro__:
        if not issubclass(base, Struct):
            break
        text = _of_module(base.__module__).get(base.__name__, _NONE).fields.get(name)
        if text:
            return text
    return ""


_NONE = Descriptions()


@lru_cache(maxsize=64)
def _of_module(name: str) -> dict[str, Descriptions]:
    """By the name of the class; nothing when the source is not at hand, as in a frozen program."""
    try:
        source = inspect.getsource(sys.modules[name])
    except OSError:
        return {}
    return {node.name: _of_class(node) for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def _of_class(node: ast.ClassDef) -> Descriptions:
    found = Descriptions(_paragraphs(ast.get_docstring(node) or ""))
    for statement, following in pairwise(node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = _text(following)
            if text:
                found.fields[statement.target.id] = _paragraphs(text)
    return found


def _text(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return value if isinstance(value, str) else ""
    return ""


def _paragraphs(text: str) -> str:
    """Lines that the source had to break are joined; empty lines still part paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))
