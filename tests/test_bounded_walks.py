"""Objects of an informer are walked in slices: a handler or a reconciler never goes through all of them at once.

`Informer.list` and `Informer.keys` give everything there is, so what they return is for `scan` and `in_slices` alone.
The list below has what remains, most of it kinds of which an operator makes a few; it may only shrink.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/karmada"
_OWN = "kube/runtime"
"""The primitives themselves."""
_SLICED = ("in_slices", "add_all")
FEW = frozenset(
    {
        # clusters, by name
        "controllers/networking/exposure.py:_named",
        "controllers/unified_auth.py:_compute_grants",
        "estimator/client/connections.py:first_round",
        "metricsadapter/clusters.py:names",
        "problemdetector/name_resolution.py:once",
        # definitions of kinds, and what is declared of them
        "controllers/detector/kinds.py:_served_here",
        "interpreter/sources.py:_customization_changed",
        "interpreter/sources.py:_load_webhooks",
        "kube/server/crds/serving.py:_concerned",
        "kube/server/crds/serving.py:reconcile",
        # roles, tokens, quotas and autoscalers of a namespace
        "controllers/federated_hpa/controller.py:_propose",
        "controllers/federated_resource_quota/enforcement.py:_of_namespace",
        "controllers/federated_resource_quota/enforcement.py:_resync",
        "estimator/estimator.py:quotas",
        "kube/server/controllers/bootstrap_tokens.py:reconcile",
        "kube/server/controllers/cluster_roles.py:reconcile",
    }
)


def test_no_informer_is_walked_at_once() -> None:
    found = {f"{path}:{name}" for path, tree in _modules() for name in _walks(tree)}
    assert found - FEW == set()
    assert FEW - found == set(), "walked no more: take them off the list"


def test_the_rule_sees_a_walk() -> None:
    walking = """
class Handler:
    def __init__(self, context):
        self._works = context.informers.of(WORKS)

    def changed(self, old, new):
        return [work for work in self._works.list()]

    async def queue(self, informer: Informer):
        for key in informer.keys():
            self.add(key)
        async for key in in_slices(informer.keys()):
            self.add(key)
        async for work in self._works.scan():
            self.add(work)
"""
    assert set(_walks(ast.parse(walking))) == {"changed", "queue"}


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith((_OWN, "kube/sim", "search")):
            yield name, ast.parse(path.read_text())


def _walks(tree: ast.Module) -> Iterator[str]:
    """Yield the functions that call `list` or `keys` of an informer."""
    informers = set(_informers(tree))
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        sliced = {id(node) for call in _calls(function, *_SLICED) for arg in call.args for node in ast.walk(arg)}
        for call in ast.walk(function):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in ("list", "keys")
                and _last(call.func.value) in informers
                and ast.unparse(call.func.value) != "self._informers"
                and id(call) not in sliced
            ):
                yield function.name


def _informers(tree: ast.Module) -> Iterator[str]:
    """Yield the names of attributes, variables, fields and parameters that hold an informer."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(_is_made(call) for call in ast.walk(node.value)):
            yield from (_last(target) for target in node.targets)
        elif isinstance(node, ast.AnnAssign | ast.arg) and node.annotation and "Informer" in _words(node.annotation):
            yield node.arg if isinstance(node, ast.arg) else _last(node.target)


def _is_made(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    made = ast.unparse(node.func)
    return made.endswith("informers.of") or made == "Informer"


def _calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last(node.func) in names)


def _words(annotation: ast.AST) -> set[str]:
    return {_last(node) for node in ast.walk(annotation) if isinstance(node, ast.Name | ast.Attribute)}


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
