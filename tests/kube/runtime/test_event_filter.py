"""Filters: which handlers a change concerns, and that what several look at is looked at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_filter import EVERYTHING, EventFilter, Handler, Subscription, concerned, matching
from tests.support.cases import cases


def obj(spec: Any = None, **metadata: Any) -> Obj:
    return {"metadata": {"name": "a", **metadata}, "spec": spec}


def colour(obj: Obj) -> Iterable[str]:
    return [obj["metadata"]["labels"]["colour"]] if "labels" in obj["metadata"] else ()


ONE = obj(1, generation=1)
RED, BLUE = (obj(1, labels={"colour": name}) for name in ("red", "blue"))


@cases(
    (EVERYTHING, ONE, ONE, True),
    (EventFilter(on=("ADDED",)), None, ONE, True),
    (EventFilter(on=("ADDED",)), ONE, ONE, False),
    (EventFilter(on=("MODIFIED",)), ONE, ONE, True),
    (EventFilter(on=("ADDED", "MODIFIED")), ONE, None, False),
    (EventFilter(on=("DELETED",)), ONE, None, True),
    (EventFilter(on=("DELETED",)), None, ONE, False),
    (EventFilter(changed=("spec",)), None, ONE, True),
    (EventFilter(changed=("spec",)), ONE, None, True),
    (EventFilter(changed=("spec",)), ONE, obj(1, generation=2), False),
    (EventFilter(changed=("spec",)), ONE, obj(2), True),
    (EventFilter(changed=("metadata.generation", "spec")), ONE, obj(1, generation=2), True),
    (EventFilter(changed=("metadata.generation", "spec")), ONE, obj(2, generation=1), True),
    (EventFilter(changed=("metadata.deletionTimestamp",)), ONE, obj(1, deletionTimestamp="t"), True),
    (EventFilter(changed=("metadata.labels",)), obj(), obj(labels={}), False),
    (EventFilter(changed=("metadata.labels",)), obj(), RED, True),
    (EventFilter(changed=("spec.a",)), obj({"a": 1}), obj({"a": 1, "b": 2}), False),
    (EventFilter(changed=("spec.a",)), obj({"a": 1}), obj(None), True),
    (EventFilter(changed=("spec.a",)), obj({"a": 0}), obj({}), True),
    (EventFilter(changed=("spec.a",)), obj({"a": {}}), obj({}), True),
    (EventFilter(having=(colour, "red")), RED, BLUE, True),
    (EventFilter(having=(colour, "red")), BLUE, RED, True),
    (EventFilter(having=(colour, "red")), RED, None, True),
    (EventFilter(having=(colour, "red")), None, BLUE, False),
    (EventFilter(having=(colour, "red")), ONE, ONE, False),
    (EventFilter(having=(colour, "red"), changed=("spec",)), RED, RED, False),
    (EventFilter(having=(colour, "red"), on=("DELETED",)), None, RED, False),
)
def test_a_filter_says_which_changes_concern_a_handler(
    wanted: EventFilter, old: Obj | None, new: Obj | None, expected: bool
) -> None:
    def handler(_old: Obj | None, _new: Obj | None) -> None:
        raise AssertionError("it is found, not called")

    assert concerned([Subscription(handler, wanted)], old, new) == ([handler] if expected else [])


def test_handlers_are_found_in_their_order_and_what_they_share_is_computed_once_for_each_object() -> None:
    computed: list[Obj] = []

    def counted(obj: Obj) -> Iterable[str]:
        computed.append(obj)
        return colour(obj)

    handlers = [lambda old, new, n=n: None for n in range(5)]  # noqa: ARG005
    colours = ("red", "blue", "green", "red", "blue")
    subscriptions = [
        Subscription(handler, EventFilter(having=(counted, name)))
        for handler, name in zip(handlers, colours, strict=True)
    ]
    assert concerned(subscriptions, RED, BLUE) == [handlers[0], handlers[1], handlers[3], handlers[4]]
    assert computed == [RED, BLUE]


@cases((ONE, obj(2), True), (obj(2), ONE, True), (obj(2), None, False), (None, ONE, True))
def test_a_condition_holds_for_a_change_of_which_either_object_fulfils_it(
    old: Obj | None, new: Obj | None, expected: bool
) -> None:
    assert matching(lambda o: o["spec"] == 1)(old, new) is expected


def test_a_function_that_fails_hides_no_change_from_its_handlers_and_the_others() -> None:
    called: list[str] = []

    def broken(obj: Obj) -> Iterable[str]:
        raise ValueError(obj["metadata"]["name"])

    def handler(name: str) -> Handler:
        return lambda _old, _new: called.append(name)

    subscriptions = [
        Subscription(handler("broken"), EventFilter(having=(broken, "red"))),
        Subscription(handler("red"), EventFilter(having=(colour, "red"))),
        Subscription(handler("blue"), EventFilter(having=(colour, "blue"))),
    ]
    for handle in concerned(subscriptions, RED, RED):
        handle(RED, RED)
    assert called == ["broken", "red"]
