"""No test depends on how busy the machine is: what such tests look like is forbidden.

The tests are read, not run. ALLOWED has what looks like it and is none, each with its reason; it only gets shorter.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import pytest

TESTS = Path(__file__).parent
PATIENT = 60.0
"""Seconds that a machine under load may take for what an idle one does in milliseconds."""
WIDE = {"module", "session", "package", "class"}
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Rule: TypeAlias = Callable[[Function, dict[str, str]], Iterator[ast.AST]]


def words(node: ast.AST) -> str:
    """A name with dots, or "" for what is none."""
    if isinstance(node, ast.Call):
        return words(node.func)
    if isinstance(node, ast.Attribute):
        return f"{words(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    """Calls of functions with these last names."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and words(each).rpartition(".")[2] in names:
            yield each


def number(node: ast.AST | None) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    return None


def is_short(node: ast.AST | None) -> bool:
    value = number(node)
    return value is not None and value < PATIENT


def keyword(call: ast.Call, *names: str) -> ast.AST | None:
    return next((given.value for given in call.keywords if given.arg in names), None)


def blocks(function: Function) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(node, name, None)
            if isinstance(found, list):
                yield found


# --- the rules


def given_on_a_shared_fixture(function: Function, scopes: dict[str, str]) -> Iterator[ast.AST]:
    """What one example leaves in a server the next one finds there."""
    if any(words(decorator) == "given" for decorator in function.decorator_list):
        for argument in (*function.args.args, *function.args.kwonlyargs):
            if scopes.get(argument.arg) in WIDE:
                yield argument


def sleep_as_proof(function: Function, _: dict[str, str]) -> Iterator[ast.AST]:
    """That nothing has happened for a moment says nothing, or fails when the moment is long."""
    for block in blocks(function):
        for first, second in pairwise(block):
            sleeps = isinstance(first, ast.Expr) and any(
                words(call) in ("asyncio.sleep", "time.sleep") and number(call.args[0]) != 0
                for call in calls(first, "sleep")
            )
            if sleeps and isinstance(second, ast.Assert):
                yield first


def absolute_seconds(function: Function, _: dict[str, str]) -> Iterator[ast.AST]:
    """Count calls instead (tests/support/counting.py), or compare with what the same machine does at that moment."""
    if not any(real_clocks(function)):
        return
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            compare = node.test
            timed = any(real_clocks(compare)) or "seconds" in {words(part) for part in ast.walk(compare)}
            for operator, limit in zip(compare.ops, compare.comparators, strict=True):
                if timed and isinstance(operator, ast.Lt | ast.LtE) and is_short(limit):
                    yield node


def real_clocks(node: ast.AST) -> Iterator[ast.Call]:
    """Those of FakeClock have the same names."""
    for call in calls(node, "process_time", "thread_time", "perf_counter", "monotonic", "getrusage", "cpu_seconds"):
        if words(call).rpartition(".")[0] in ("", "time", "resource"):
            yield call


def short_wait(function: Function, _: dict[str, str]) -> Iterator[ast.AST]:
    """A limit ends a test that fails; where success is expected it is LIMIT (tests/support/eventually.py)."""
    expected = {
        id(call)
        for block in ast.walk(function)
        if isinstance(block, ast.With | ast.AsyncWith)
        and any(words(item.context_expr) in ("pytest.raises", "raises") for item in block.items)
        for call in ast.walk(block)
    }
    for call in calls(function, "timeout", "wait_for", "urlopen", "communicate", "receive", "eventually", "run"):
        if id(call) not in expected and is_short(limit_of(call)):
            yield call
    for call in calls(function, "eventually_blocking"):
        if is_short(keyword(call, "seconds") or (call.args[1] if len(call.args) > 1 else None)):
            yield call


def limit_of(call: ast.Call) -> ast.AST | None:
    name = words(call)
    if name == "asyncio.timeout" and call.args:
        return call.args[0]
    if name == "asyncio.wait_for" and len(call.args) > 1:
        return call.args[1]
    return keyword(call, "timeout", "within")


def closed_port(function: Function, _: dict[str, str]) -> Iterator[ast.AST]:
    """Another program may take it: `free_port` keeps it (tests/support/ports.py)."""
    for node in ast.walk(function):
        if isinstance(node, ast.With) and any(words(item.context_expr) == "socket.socket" for item in node.items):
            last = node.body[-1]
            if isinstance(last, ast.Return | ast.Assign) and any(calls(last, "getsockname")):
                yield last


def real_lease(function: Function, _: dict[str, str]) -> Iterator[ast.AST]:
    """A process that gets no CPU for a while loses it: take `unhurried` (tests/support/running.py)."""
    for call in calls(function, "Election"):
        if number(keyword(call, "lease_duration")) is None or is_short(keyword(call, "lease_duration")):
            yield call


RULES: dict[Rule, str] = {
    given_on_a_shared_fixture: r"@given\(",
    sleep_as_proof: r"\.sleep\([^)]+\).*\n *assert ",
    absolute_seconds: r"assert .*<=? [\d.]+",
    short_wait: r"(timeout|within|seconds)=[\d.]|timeout\([\d.]|wait_for\(|eventually_blocking\(",
    closed_port: r"getsockname",
    real_lease: r"\bElection\(",
}
"""With what a file has that breaks it: others need not be parsed."""
NOTHING_FAILS = "it cannot fail where nothing happens, however busy the machine is"
ALLOWED: dict[Rule, dict[str, str]] = {
    given_on_a_shared_fixture: {
        "controllers/failover/test_failover_histories.py::"
        "test_no_history_loses_the_last_copy_and_all_end_at_rest": "each history cleans up; the clock is simulated",
        "controllers/federated_resource_quota/test_quota_histories.py::"
        "test_the_total_is_that_of_the_stored_bindings": "each history cleans up; the clock is simulated",
        "controllers/networking/test_service_histories.py::"
        "test_at_rest_consumers_have_what_providers_have": "each history cleans up; the clock is simulated",
        "integration/test_informer_convergence.py::"
        "test_an_informer_equals_the_server_after_any_history": "certificates, which are copied",
        "integration/test_write_laws.py::"
        "test_any_sequence_of_writes_keeps_the_laws": "a program begins with nothing, which it checks",
        "kube/server/handlers/test_follow_ups.py::"
        "test_the_object_is_what_a_create_and_the_controllers_own_writes_leave": "objects have names of their own",
    },
    sleep_as_proof: {
        "kube/server/storage/test_etcd_progress.py::"
        "test_a_watch_requests_progress_only_when_a_newer_revision_was_reported": NOTHING_FAILS,
        "kube/sim/faults/test_cluster_faults.py::test_a_paused_controller_catches_up_when_it_goes_on": NOTHING_FAILS,
        "kube/sim/faults/test_cluster_faults.py::"
        "test_a_component_that_two_faults_pause_goes_on_after_both": NOTHING_FAILS,
        "kube/sim/faults/test_request_faults.py::"
        "test_a_partition_may_silence_only_the_watches_of_the_control_plane": NOTHING_FAILS,
    },
    absolute_seconds: {
        "kube/sim/test_cluster_clock.py::"
        "test_time_passes_at_the_rate_it_is_given": "twenty simulated seconds, a thousandfold",
    },
}


# --- what they say of the tests


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())


def functions(file: Path) -> Iterator[Function]:
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@cache
def scopes_in(file: Path) -> dict[str, str]:
    """The fixtures of a file, with the scope of each."""
    if not file.exists():
        return {}
    return {
        function.name: str(getattr(keyword(decorator, "scope"), "value", "function"))
        if isinstance(decorator, ast.Call)
        else "function"
        for function in functions(file)
        for decorator in function.decorator_list
        if words(decorator) in ("pytest.fixture", "pytest_asyncio.fixture", "fixture")
    }


def scopes_for(file: Path) -> dict[str, str]:
    """All fixtures that the tests of a file can name."""
    found: dict[str, str] = {}
    for folder in reversed([parent for parent in file.parents if parent.is_relative_to(TESTS)]):
        found |= scopes_in(folder / "conftest.py")
    return found | scopes_in(file)


def findings(file: Path, rule: Rule) -> Iterator[tuple[str, int]]:
    if not re.search(RULES[rule], file.read_text()):
        return
    scopes = scopes_for(file)
    for function in functions(file):
        for node in rule(function, scopes):
            yield f"{file.relative_to(TESTS)}::{function.name}", getattr(node, "lineno", 0)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_test_depends_on_how_busy_the_machine_is(rule: Rule) -> None:
    files = sorted(TESTS.rglob("*.py"))
    found = dict(finding for file in files for finding in findings(file, rule))
    allowed = ALLOWED.get(rule, {})
    new = [f"tests/{place} (line {line})" for place, line in found.items() if place not in allowed]
    assert not new, f"{rule.__doc__}\n" + "\n".join(new)
    assert not allowed.keys() - found.keys(), "these are no longer needed in ALLOWED"


BREAKING: list[tuple[Rule, str]] = [
    (given_on_a_shared_fixture, "@given(x=st.none())\ndef test_it(server, x): ..."),
    (sleep_as_proof, "async def test_it():\n    await asyncio.sleep(0.3)  # a moment\n    assert not seen"),
    (sleep_as_proof, "def test_it():\n    for _ in xs:\n        time.sleep(A_MOMENT)\n        assert not seen"),
    (absolute_seconds, "def test_it():\n    began = time.thread_time()\n    assert time.thread_time() - began < 2"),
    (absolute_seconds, "def test_it():\n    seconds = time.process_time() - began\n    assert seconds <= 2.5"),
    (short_wait, "async def test_it():\n    async with asyncio.timeout(10): ..."),
    (short_wait, "async def test_it(): await asyncio.wait_for(task, 5)"),
    (short_wait, "def test_it(): eventually_blocking(ready, 20)"),
    (short_wait, "async def test_it(): await eventually(ready, within=3)"),
    (short_wait, "def test_it(): process.communicate(timeout=10)"),
    (closed_port, "def port():\n    with socket.socket() as one:\n        return one.getsockname()[1]"),
    (real_lease, "def test_it(): Election(name='a')"),
    (real_lease, "def test_it(): Election(name='a', lease_duration=3)"),
]
KEEPING: list[tuple[Rule, str]] = [
    (given_on_a_shared_fixture, "@given(x=st.none())\ndef test_it(own, x): ..."),
    (sleep_as_proof, "async def test_it():\n    await asyncio.sleep(0)\n    assert not seen"),
    (absolute_seconds, "def test_it():\n    began = time.thread_time()\n    assert time.thread_time() - began < LIMIT"),
    (absolute_seconds, "def test_it():\n    assert clock.monotonic() - began < 3"),
    (
        short_wait,
        "async def test_it():\n    with pytest.raises(TimeoutError):\n        async with asyncio.timeout(0.1): ...",
    ),
    (short_wait, "async def test_it():\n    async with asyncio.timeout(LIMIT): ..."),
    (closed_port, "def port():\n    with socket.socket() as one:\n        fail_at(one.getsockname()[1])"),
    (real_lease, "def test_it(): Election(name='a', lease_duration=3600)"),
]


def found_in(rule: Rule, text: str) -> bool:
    [function] = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    scopes = {"server": "module", "own": "function"}
    return bool(re.search(RULES[rule], text)) and any(rule(function, scopes))


@pytest.mark.parametrize(("rule", "text"), BREAKING)
def test_what_depends_on_the_machine_is_found(rule: Rule, text: str) -> None:
    assert found_in(rule, text)


@pytest.mark.parametrize(("rule", "text"), KEEPING)
def test_what_does_not_is_left_alone(rule: Rule, text: str) -> None:
    assert not found_in(rule, text)
