"""Objects as what they share and the values in which they differ."""

from __future__ import annotations

from karmada.kube.objects.variants import Pattern, Variant, Variants

PATTERN = Pattern({"kind": "A", "metadata": {"name": "a", "labels": {"b": "c"}}}, [("metadata", "name"), ("", "kind")])


def test_each_is_made_of_the_pattern_and_its_values() -> None:
    objects = Variants([Variant(PATTERN, ("one", "A")), Variant(PATTERN, ("two", "B"))])
    one = {"kind": "A", "metadata": {"name": "one", "labels": {"b": "c"}}}
    two = {"kind": "B", "metadata": {"name": "two", "labels": {"b": "c"}}}
    assert list(objects) == [one, two]
    assert (len(objects), objects[-1], list(objects[1:])) == (2, two, [two])


def test_who_changes_one_changes_nothing_else() -> None:
    objects = Variants([Variant(PATTERN, ("one", "A"))])
    objects[0]["metadata"]["labels"]["b"] = "changed"
    assert objects[0]["metadata"]["labels"] == {"b": "c"}
