from __future__ import annotations

from typing import Any

from karmada.api.cluster_bounds import bounded, bounded_enablements, bounded_status, bounded_text
from tests.support.cases import cases


def entry(version: str, kinds: int) -> dict[str, Any]:
    return {"groupVersion": version, "resources": [{"name": f"k{number}", "kind": "K"} for number in range(kinds)]}


@cases(("v" * 256, "v" * 256), ("v" * 257, "v" * 255 + "…"), ("", ""))
def test_texts_are_cut_with_an_ellipsis(text: str, kept: str) -> None:
    assert bounded_text(text) == kept


def test_what_a_real_cluster_serves_is_the_very_list() -> None:
    entries = [entry(f"g{number}/v1", 20) for number in range(300)]
    assert bounded_enablements(entries) is entries


def test_kinds_are_counted_over_all_groups() -> None:
    kept = bounded_enablements([entry(f"g{number}/v1", 1000) for number in range(20)])
    assert len(kept) == 20
    assert sum(len(each["resources"]) for each in kept) == 8192
    assert len(bounded_enablements([entry(f"g{number}/v1", 0) for number in range(5000)])) == 2048


def test_names_that_are_too_long_are_left_out_of_maps() -> None:
    assert bounded({"cpu": "1", "x" * 257: "1"}) == {"cpu": "1"}
    assert len(bounded({str(number): "1" for number in range(1000)})) == 256


@cases(None, 7, [], "x", {"apiEnablements": 7}, {"apiEnablements": [7, {"resources": 7}]})
def test_wrong_types_are_left_to_validation(status: Any) -> None:
    assert bounded_status(status) == status
