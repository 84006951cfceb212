"""Scripts in their sandbox: what they can do, what they cannot, and that nothing stays behind."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.interpreter.lua import vm
from karmada.interpreter.lua.library import Library
from karmada.interpreter.lua.pool import Pool
from karmada.interpreter.lua.script import LuaScript
from karmada.interpreter.lua.vm import LuaError
from tests.support.cases import cases
from tests.support.eventually import LIMIT


def run(body: str, *arguments: Any, **kwargs: Any) -> Any:
    """What the body returns, as that of a function of a, b and c."""
    return LuaScript(f"function f(a, b, c) {body} end").call("f", *arguments, **kwargs).values[0]


def error(body: str, *arguments: Any) -> str:
    with pytest.raises(LuaError) as refusal:
        run(body, *arguments)
    return str(refusal.value)


# values

JSON = st.recursive(
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4) | st.dictionaries(st.text(max_size=6), inner, min_size=1, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_a_value_comes_back_as_it_went_in(value: Any) -> None:
    assert run("return a", value) == value


def test_nulls_are_absent_and_dropped_from_lists() -> None:
    assert run("return {#a.list, a.list[2], a.none == nil}", {"list": [1, None, 2], "none": None}) == [2, 2, True]


def test_whole_numbers_have_no_point() -> None:
    assert run("return {3.0, 1e15, 0.1, tostring(3.0), 2^60}") == [3, 10**15, 0.1, "3", 2**60]
    assert all(type(number) is int for number in run("return {3.0, 1e15, -0.0}"))


def test_integers_beyond_doubles_are_rounded_not_refused() -> None:
    assert run("return a", {"a": 10**30})["a"] == 1e30


@cases(
    ("return {[1]=1, [3]=3}", "cannot encode sparse array"),
    ("return {[1.5]=1}", "cannot encode sparse array"),
    ("return {1, x=2}", "cannot encode mixed or invalid key types"),
    ("return {[true]=1}", "cannot encode mixed or invalid key types"),
    ("local t={k='v'} return {x=t, y=t}", "cannot encode recursively nested tables to JSON"),
    ("local t={} t.t=t return t", "cannot encode recursively nested tables to JSON"),
    ("return {f=print}", "cannot encode function to JSON"),
    ("return 0/0", "json: unsupported value: NaN"),
    ("return 1/0", "json: unsupported value: +Inf"),
)
def test_what_is_no_json_is_refused(body: str, refusal: str) -> None:
    assert error(body) == refusal


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert run("return string.sub(a, 1, 1)", "é") == "\ufffd"


def test_deeply_nested_results_are_an_error_not_a_crash() -> None:
    assert "cannot read what the script made" in error("local t = {1} for i = 1, 5000 do t = {t} end return t")


# functions


def test_errors_of_calling() -> None:
    with pytest.raises(LuaError, match=r"^not found function g$"):
        LuaScript("function f() end").call("g")
    with pytest.raises(LuaError, match=r"^g is not a function: number$"):
        LuaScript("g = 3").call("g")
    with pytest.raises(LuaError, match=r"^<string>:2: .*near"):
        LuaScript("x = 1\nfunction (").call("g")
    assert error("error('boo')") == "<string>:1: boo"
    assert error("error({})") == "error object is a table value"
    assert error("return a.b.c", {}) == "<string>:1: attempt to index field 'b' (a nil value)"


def test_results_that_are_missing_are_nil() -> None:
    assert LuaScript("function f() return 1 end").call("f", results=3) == (("number", "nil", "nil"), [1, None, None])


def test_every_run_has_an_environment_of_its_own() -> None:
    pool = Pool()
    LuaScript("leak = 1; type = nil; string.find = nil; math.floor = nil; function f() end", pool=pool).call("f")
    left = LuaScript("function f() return {leak == nil, type(1), ('abc'):find('b'), math.floor(1.5)} end", pool=pool)
    assert left.call("f").values == [[True, "number", 2, 1]]
    assert (pool.made, pool.reused) == (1, 1)


def test_arguments_are_copies() -> None:
    given_ = {"spec": {"replicas": 1}}
    assert run("a.spec.replicas = 2 return a", given_) == {"spec": {"replicas": 2}}
    assert given_ == {"spec": {"replicas": 1}}


def test_goto_is_accepted() -> None:
    body = "local n = 0 for i = 1, 4 do if i % 2 == 0 then goto continue end n = n + i ::continue:: end return n"
    assert run(body) == 4


def test_lua_5_1_names_are_there() -> None:
    body = "return {unpack({1, 2})}, table.getn({1, 2}), table.maxn({1, [7]=1}), math.mod(7, 4), _VERSION"
    assert LuaScript(f"function f() {body} end").call("f", results=5).values == [[1, 2], 2, 7, 3, "Lua 5.1"]
    assert run("local t = {} table.insert(t, 3, 'x') return t[3]") == "x"
    assert run("return table.remove({1, 2}, 9) == nil") is True


# order


@cases(
    ("{z=1, y=2, a=3}", "zya"),
    ("{['z']=1, y=2, [ \"a\" ] = 3, [1]='l'}", "1zya"),
    ("{z=1, y={q=1, p=2}, a=(function() local x, b = 1, 2 return x end)()}", "zya"),
    ("{'l', z=1, 'm', a=2}", "12za"),
    ("{ -- a comment with { braces\n z='}', y=[[ { ]], --[==[ }\n ]==] a=1 }", "zya"),
)
def test_fields_are_walked_in_the_order_of_the_constructor(table: str, keys: str) -> None:
    assert run(f"local s = '' for k in pairs({table}) do s = s .. k end return s") == keys


def test_fields_are_walked_in_the_order_of_their_making() -> None:
    made = "local t = {} t.z = 1 t['y'] = 2 t.a = 3 t.y = nil t.y = 4"
    assert run(f"{made} local s = '' for k in pairs(t) do s = s .. k end return s") == "zya"


def test_fields_of_arguments_are_walked_in_the_order_of_their_names() -> None:
    assert run("local s = '' for k in pairs(a) do s = s .. k end return s", {"z": 1, "b": 2, "y": 3}) == "byz"


def test_next_walks_like_pairs() -> None:
    assert (
        run("local s, k = '' repeat k = next(a, k) s = s .. (k or '.') until not k return s", {"z": 1, "b": 2}) == "bz."
    )
    assert run("for k, v in next, {z=1, a=2} do return k end") == "z"
    assert run("return next({}) == nil") is True


def test_fields_may_be_taken_out_while_they_are_walked() -> None:
    assert run("for k in pairs(a) do a[k] = nil a.c = nil end return next(a) == nil", {"b": 1, "c": 2}) is True


@cases("g{1}", "g{x=1}[1]", "t.g{1}", "t:m{1}", "g'x'", "('x'):len()", "t[1]{2}", "g{g{1}}")
def test_calls_with_a_table_stay_calls(call: str) -> None:
    source = f"""
    local function g(x) return {{x}} end
    local t = {{g, g=g, m=function(self, x) return x end}}
    function f() local got = {call} return got ~= nil end
    """
    assert LuaScript(source).call("f").values == [True]


# what is kept from scripts


@cases(
    "collectgarbage",
    "dofile",
    "getfenv",
    "getmetatable",
    "load",
    "loadfile",
    "loadstring",
    "rawequal",
    "rawget",
    "rawset",
    "setfenv",
    "setmetatable",
    "module",
    "newproxy",
)
def test_dangerous_functions_are_refused(name: str) -> None:
    assert error(f"{name}('x')").endswith(
        f"call function {name} is not supported in karmada customized resourceinterpreter."
    )


@cases("io", "debug", "coroutine", "channel", "python", "bit32", "jit", "ffi")
def test_dangerous_libraries_are_absent(name: str) -> None:
    assert run(f"return {name} == nil") is True
    assert f"module {name} not found" in error(f"require('{name}')")


def test_os_has_nothing_but_the_clock() -> None:
    assert run("local names = {} for k in pairs(os) do names[#names + 1] = k end return names") == ["date", "time"]
    assert error("package.loadlib('x', 'y')").endswith("loadlib is not supported")


@cases("dump", "gsub", "rep")
def test_growing_string_functions_are_refused(name: str) -> None:
    refusal = f"The Lua function string.{name} is not supported by Karmada."
    assert refusal in error(f"string.{name}('x', 1000000000)")
    assert refusal in error(f"('x'):{name}(1000000000)")


def test_compiled_chunks_are_refused() -> None:
    assert LuaScript("\x1bLuaR").problem() == "compiled chunks are not accepted, only source"


@cases(
    "return tostring(kube.resourceAdd)",
    "return type(kube.resourceAdd)",
    "local ok, e = pcall(kube.resourceAdd, 'x') return type(e)",
    "local ok, e = pcall(kube.accuratePodRequirements, {spec={containers='x'}}) return type(e)",
    "local ok, e = xpcall(function() kube.getPodDependencies(1, 2) end, function(e) return e end) return type(e)",
)
def test_no_object_of_python_reaches_a_script(body: str) -> None:
    result = run(f"local kube = require('kube') {body}")
    assert result in ("string", "function") or result.startswith("function: ")


def test_strings_metatable_cannot_be_bent() -> None:
    assert run("string.upper = function() return 'bent' end return ('x'):upper()") == "X"
    assert "attempt to index" in error("local s = 'x' s.upper = 1")


def test_the_order_of_fields_is_no_way_to_a_metatable() -> None:
    body = """
      local t = _karmada_ordered_table({}, {"a", __index = function() return "bent" end, __gc = function() end})
      local g = _karmada_ordered_table(_G, {__index = function() return "bent" end})
      return {t.missing == nil, missing == nil, _karmada_ordered_table("x")}
    """
    assert run(body) == [True, True, "x"]


# limits

LONG = """
local s, p = 'a', 'a'
for i = 1, 19 do s = s .. s end
for i = 1, 18 do p = p .. p end
while true do
"""


@cases(
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do xpcall(function() while true do end end, function() while true do end end) end",
    "local function g() return g() end return g()",
    "repeat local ok = pcall(error) until false",
    "for i = 1, 1e18 do end",
    "local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 0) table.remove(t, 1) end",
    "local s = 'a' for i = 1, 14 do s = s .. s end return string.find(s, '.-.-.-.-b')",
    "local s = 'a' for i = 1, 14 do s = s .. s end return string.match(s, '(a*)*(a*)(a*)b')",
    "local s = 'a' for i = 1, 14 do s = s .. s end for w in string.gmatch(s, 'a*a*a*b') do end",
    f"return string.find('{'a' * 36}', '{'a?' * 28}b')",
    "local t = {} for i = 1, 2e5 do t[i] = i%7 end while true do table.sort(t, function(x,y) return x < y end) end",
    "while true do print('x') end",
    LONG + "s:find(p .. 'b', 1, true) end",
    LONG + "s:find(p .. 'b') end",
    LONG + "s:match(p .. 'b') end",
    "local kube = require('kube') while true do kube.resourceAdd('1', '2') end",
    "return a:find('x', 1, true), (function() while true do end end)()",
)
def test_no_script_runs_longer_than_it_may(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada.interpreter.lua.vm.SECONDS", 0.1)
    started = time.thread_time()
    script = LuaScript(f"function f(a) {body} end", library=Library(printed=lambda _: None))
    with pytest.raises(LuaError, match="context deadline exceeded"):
        script.call("f", "text")
    assert time.thread_time() - started < LIMIT


class Counted(vm.VM):
    """Looks at the time in every step; from the step `last` on it is over."""

    steps, last = 0, 1 << 30

    def _left(self) -> float:
        self.steps += 1
        return 0.0 if self.steps >= self.last else 1e-300


@cases("return 1", "error('x')")
def test_time_that_is_over_in_any_step_is_an_error_of_the_script_or_comes_too_late(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = vm._text
    monkeypatch.setattr(vm, "_text", lambda name: text(name).replace("HOOK_EVERY = 1000", "HOOK_EVERY = 1"))
    unhurried = Counted()
    outcome = call_ended(unhurried, body)
    outcomes = []
    for last in range(unhurried.steps - 40, unhurried.steps + 1):
        hurried = Counted()
        hurried.last = last
        outcomes.append(call_ended(hurried, body))
    assert set(outcomes) == {"context deadline exceeded", outcome}
    assert outcomes[-1] == outcome


def call_ended(tried: vm.VM, body: str) -> str:
    """The error of a script, or its result."""
    try:
        return str(tried.call(f"function f() {body} end", "f", (), 1, Library()))
    except LuaError as error:
        return str(error)


def test_a_second_is_allowed_for_the_chunk_and_the_call() -> None:
    started = time.thread_time()
    with pytest.raises(LuaError, match="context deadline exceeded"):
        LuaScript("while true do end").call("f")
    assert time.thread_time() - started < LIMIT


@cases(
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do t[#t + 1] = {} end",
    "local t = {} while true do pcall(function() while true do t[#t + 1] = {t} end end) end",
    "local function g(n) return 1 + g(n + 1) end return g(1)",
    "local function g(n) local ok, e = pcall(g, n + 1) return g(n) end return g(1)",
    "local function g(n) return pcall(g, n + 1) and g(n) end return g(1)",
    "local function g() table.sort({1, 2, 3}, function() g() return false end) pcall(g) return g() end g()",
    "local kube, s = require('kube'), 'x' while true do s = s .. s pcall(kube.resourceAdd, s) end",
)
def test_memory_and_depth_are_limited(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada.interpreter.lua.vm.MEMORY", 8 << 20)
    monkeypatch.setattr("karmada.interpreter.lua.vm.SECONDS", 0.3)
    started = time.thread_time()
    with pytest.raises(LuaError, match=r"memory|overflow|deadline"):
        run(body)
    assert time.thread_time() - started < LIMIT
    assert run("return 1") == 1


def test_large_arguments_do_not_use_up_a_scripts_memory() -> None:
    assert run("return #a", ["x" * 100 + str(i) for i in range(200_000)]) == 200_000


def test_long_texts_are_refused_by_the_string_library() -> None:
    refusal = error("return string.upper(a)", "x" * 1_000_001)
    assert (
        "string length 1000001 exceeds the maximum allowed input string length 1000000 in Karmada lua string lib"
        in refusal
    )
    assert run("return string.len(a)", "x" * 1_000_001) == 1_000_001


def test_scripts_run_in_threads() -> None:
    pool = Pool(2)
    script = LuaScript("function f(n) local s = 0 for i = 1, n do s = s + i end return s end", pool=pool)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda n: script.call("f", n).values[0], range(1, 200)))
    assert answers == [n * (n + 1) // 2 for n in range(1, 200)]
    assert pool.kept + pool.dropped == 199


# patterns that are slow in the library are matched here, and mean the same


def test_texts_are_found_as_they_are() -> None:
    body = "return {string.find(a, b, c, true)}, {string.find(a, b, c)}"
    for text, piece, init, place in (
        ("abc", "c", 1, [3, 3]),
        ("abc", "c", -1, [3, 3]),
        ("abc", "a", 2, []),
        ("abc", "", 4, [4, 3]),
    ):
        found = LuaScript(f"function f(a, b, c) {body} end").call("f", text, piece, init, results=2).values
        assert found == [place, place]
    assert run("return string.find(a, '.', 1, true)", "a.b") == 2
    assert run("return string.find(a, 'bc' .. a, 1, true) == nil", "x" * 500_000) is True
    assert run("return string.find(a, 'yy', 1, true)", "x" * 999_990 + "yy") == 999_991


TEXTS = ["", "a", "aab", "key=value; other = 17", "((a)(b))c", "2024-01-02T03:04:05Z", "x.y.z/img:1.2", "aaaa b aaaa"]
PATTERNS = [
    "a*", "a-b", "^a*$", "(%w+)%s*=%s*(%w+)", "%b()", "%f[%w]%w+", "()a()", "[^;]+;?", "(%d+)-(%d+)-(%d+)T",
    "^(.-)/([^:]*):?(.*)$",
    "(a+) b %1", "[%a_][%w_]*", "[]]", "[^%s-]+", ".-$", "a?a?b", "%.", "x$", "(%S+)$", "b()",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_slow_patterns_mean_what_quick_ones_mean(pattern: str) -> None:
    body = """
      local found = {string.find(a, b, c)}
      local all = {}
      for x, y in string.gmatch(a, b) do all[#all + 1] = tostring(x) .. '|' .. tostring(y) end
      return {found=found, match={string.match(a, b, c)}, all=all}
    """
    import lupa.lua52

    plain = lupa.lua52.LuaRuntime()
    reference = plain.execute(f"return function(a, b, c) {body} end")
    slow = LuaScript(f"function f(a, b, c) {body} end", pool=_SlowPool())
    for text in TEXTS:
        for init in (1, 2, -2):
            expected = reference(text, pattern, init)
            want = {key: list(expected[key].values()) for key in ("found", "match", "all")}
            assert slow.call("f", text, pattern, init).values[0] == want, (text, pattern, init)


class _SlowPool(Pool):
    """VMs that trust no pattern."""

    def __init__(self) -> None:
        super().__init__()
        import karmada.interpreter.lua.vm as module

        text = module._text("sandbox.lua").replace("return cost <= 2e7", "return false")
        original, module._text = module._text, lambda name: text if name == "sandbox.lua" else original(name)  # type: ignore[assignment]
        try:
            self._idle.append(module.VM())
        finally:
            module._text = original


# the library

NOW = 1_700_000_000.0


def library(body: str, *arguments: Any, results: int = 1) -> Any:
    source = f"local kube = require('kube')\nfunction f(a, b) return {body} end"
    return LuaScript(source, library=Library(now=lambda: NOW)).call("f", *arguments, results=results).values


@cases(
    ("'0', '3072Mi', '10752Mi'", "13824Mi"),
    ("'1000m', '2000m'", "3"),
    ("'3G', '5G'", "8G"),
    ("", "0"),
    ("nil, '1Gi', nil", "1Gi"),
    ("'1Gi', '1G'", "2073741824"),
    ("'0Mi', '500m'", "500m"),
    ("1, '1'", "2"),
)
def test_resource_add(call: str, sum_: str) -> None:
    assert library(f"kube.resourceAdd({call})") == [sum_]


@cases(("'500m'", 0.5), ("'1Gi'", 2**30), ("'2048m'", 2.048), ("nil", 0))
def test_get_resource_quantity(text: str, value: float) -> None:
    assert library(f"kube.getResourceQuantity({text})") == [value]


@cases(
    ("kube.resourceAdd('1x')", "quantities must match the regular expression"),
    ("kube.resourceAdd({})", "string expected, got table"),
    ("kube.getResourceQuantity()", "getResourceQuantity only accepts one argument"),
    ("kube.getResourceQuantity('-1')", "negative"),
    ("kube.accuratePodRequirements()", "getPodRequirements only accepts one argument"),
    ("kube.accuratePodRequirements('x')", "table expected, got string"),
    ("kube.getPodDependencies({})", "getPodDependencies only accepts two argument"),
    ("kube.getPodDependencies({spec={volumes=1}}, 'x')", "getPodDependencies: "),
)
def test_wrong_arguments_end_the_script(call: str, refusal: str) -> None:
    with pytest.raises(LuaError) as error:
        library(call)
    assert refusal in str(error.value)


def test_requirements_and_dependencies_of_a_template() -> None:
    containers = [
        {"resources": {"limits": {"cpu": "100m", "memory": "100M"}}},
        {"resources": {"limits": {"cpu": 1.2, "memory": "1.2G"}}, "env": [{"name": "a", "valueFrom": {}}]},
    ]
    template = {
        "spec": {"containers": containers, "nodeSelector": {"foo": "foo1"}, "volumes": [{"configMap": {"name": "c"}}]}
    }
    [needs, found, none] = library(
        "kube.accuratePodRequirements(a), kube.getPodDependencies(a, nil), kube.accuratePodRequirements({})",
        template, results=3,
    )  # fmt: skip
    assert needs["nodeClaim"] == {"nodeSelector": {"foo": "foo1"}}
    assert needs["resourceRequest"]["cpu"] == "1300m"
    assert found == [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "c"}]
    assert none is None
    assert library("kube.getPodDependencies({}, 'x')") == [[]]


def test_the_clock() -> None:
    assert library("os.time()") == [NOW]
    assert library("os.date('!%Y-%m-%d %H:%M:%S %q')") == ["2023-11-14 22:13:20 %q"]
    assert library("os.date('!*t').year") == [2023]
    assert library("os.time(os.date('*t', 86400 * 365))") == [86400 * 365]
    assert library("os.date('%F|%%', 86400 * 365)")[0].startswith("197")


def test_print_goes_to_the_host() -> None:
    lines: list[str] = []
    LuaScript("function f() print('a', 1, nil, {} ~= nil) end", library=Library(printed=lines.append)).call("f")
    assert lines == ["a\t1\tnil\ttrue"]
