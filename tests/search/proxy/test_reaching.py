from __future__ import annotations

from karmada.search.proxy.reaching import reach
from karmada.search.registries import ALL, Namespaces, Upstream
from tests.support.cases import cases

FOO, BOTH = frozenset({"foo"}), frozenset({"foo", "bar"})


@cases(
    (ALL, "", Upstream("", False)),
    (ALL, "foo", Upstream("foo", False)),
    (FOO, "", Upstream("foo", False)),
    (FOO, "foo", Upstream("foo", False)),
    (FOO, "bar", None),
    (BOTH, "", Upstream("", True)),
    (BOTH, "foo", Upstream("foo", False)),
    (BOTH, "baz", None),
)
def test_a_read_reaches_what_is_cached_and_requested(cached: Namespaces, requested: str, sent: Upstream | None) -> None:
    assert reach(cached, requested) == sent
