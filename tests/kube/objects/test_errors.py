"""Field errors: what an answer shows of them, and that no number or size of them fills the memory."""

from __future__ import annotations

from collections.abc import Iterator

from karmada.kube.objects.errors import FieldErrors, Invalid, invalid, not_supported, required, short_path
from karmada.kube.objects.gvk import GroupKind

KIND = GroupKind("example.com", "Widget")


def test_each_error_stands_once_in_the_message_and_among_the_causes() -> None:
    error = Invalid.of(KIND, "w", [required("spec.a"), invalid("spec.b", 1, "is odd"), required("spec.a")])
    assert error.message == (
        'Widget.example.com "w" is invalid: [spec.a: Required value, spec.b: Invalid value: 1: is odd]'
    )
    assert [cause["field"] for cause in error.causes] == ["spec.a", "spec.b"]


def test_errors_that_each_list_all_values_end_after_a_bounded_text() -> None:
    allowed = [f"value-{number}" for number in range(1000)]
    errors = [not_supported(f"spec.x[{index}]", "bad", allowed) for index in range(1000)]
    error = Invalid.of(KIND, "w", errors)
    assert 1 <= len(error.causes) < 10
    assert error.message.endswith(", and more errors]")
    assert len(error.message) < 100_000


def test_the_text_of_an_error_that_is_not_shown_is_never_made() -> None:
    class Counting(list[str]):
        rendered = 0

        def __iter__(self) -> Iterator[str]:
            Counting.rendered += 1
            return super().__iter__()

    allowed = Counting(["x" * 70_000])
    Invalid.of(KIND, "w", [not_supported(f"spec.x[{index}]", "bad", allowed) for index in range(1000)])
    assert Counting.rendered == 2


def test_one_error_is_shown_however_long_it_is() -> None:
    error = Invalid.of(KIND, "w", [invalid("spec.x", "v" * 200_000, "is long")])
    assert error.message.endswith("v: is long".replace("v:", 'v":'))


def test_a_list_of_errors_keeps_the_first_and_says_that_there_are_more() -> None:
    errors = FieldErrors()
    errors += [required(f"spec.x[{index}]") for index in range(600)]
    errors.extend(FieldErrors(required(f"spec.y[{index}]") for index in range(1200)))
    assert len(errors) == 1800
    assert len({id(error) for error in errors}) == FieldErrors.MOST + 1 == 1001
    assert errors.full
    assert Invalid.of(KIND, "w", errors).message.endswith(", and more errors]")


def test_a_path_with_a_huge_key_is_shortened_before_others_are_built_on_it() -> None:
    path = "spec." + "k" * 100_000 + ".last"
    assert len(short_path(path)) < 1024
    assert short_path(path).startswith("spec.k")
    assert short_path(path).endswith("k.last")
    assert short_path("spec.x") == "spec.x"
