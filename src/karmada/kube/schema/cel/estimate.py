"""What an expression costs at worst, estimated from its text and the schema of `self` before any object exists.

Every node of a checked tree gets an `Estimate`: what it costs, how large its value can be, and the place of the schema
that it reads, from which sizes follow. A loop costs its body as often as its range has elements. The weights (a name
1, ten characters 1, a list literal 10, ...) are those of a kube-apiserver, and so are its peculiarities: a custom
resource that one of them accepts must not be refused by the other. `costs` is another measure, taken while a rule runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from karmada.kube.schema.cel import syntax
from karmada.kube.schema.cel.registry import Overload
from karmada.kube.schema.cel.sizes import SchemaSizes
from karmada.kube.schema.cel.types import DYN, Type
from karmada.kube.schema.node import Node

UNLIMITED: Final = 2**64 - 1
_CHARACTER, _PATTERN_CHARACTER = 0.1, 0.25
_LIST, _MAP, _OBJECT = 10, 30, 40
"""Costs of making one, besides its content."""
_ADDRESS_BYTES, _FORMAT_NAME, _FORMAT_PATTERN = 16, 64, 128
_SCALARS = frozenset({"bool", "int", "uint", "double", "duration", "timestamp"})
_TEXT = frozenset({"string", "bytes"})
_COUNTED = frozenset({"list", "string", "bytes"})


@dataclass(frozen=True, slots=True)
class Size:
    """How many elements a value has, at least and at most."""

    least: int
    most: int

    def __or__(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))

    def __add__(self, other: Size) -> Size:
        return Size(_cap(self.least + other.least), _cap(self.most + other.most))

    def __mul__(self, other: Size) -> Size:
        return Size(_cap(self.least * other.least), _cap(self.most * other.most))

    def cost(self, each: float = _CHARACTER) -> int:
        """Return the cost of going through all of its elements."""
        return _cap(math.ceil(self.most * each))


_UNKNOWN, _ONE, _EMPTY = Size(0, UNLIMITED), Size(1, 1), Size(0, 0)


def _cap(value: int) -> int:
    return min(value, UNLIMITED)


class _Elsewhere:
    """A value that the schema does not describe."""


NOWHERE: Final = _Elsewhere()
"""Made by the expression itself. What is selected from it or runs over it is looked up from the root, as upstream."""
LOST: Final = _Elsewhere()
"""Below an entry of a map that is named like a field."""
KEY: Final = _Elsewhere()
"""The key of a map, whose length no schema limits."""
Place = Node | _Elsewhere


@dataclass(frozen=True, slots=True)
class Estimate:
    cost: int
    place: Place = NOWHERE
    size: Size | None = None
    key: Size | None = None
    item: Size | None = None
    """Estimate of the entries of a list or map that the expression makes."""

    @property
    def sized(self) -> Size:
        return _UNKNOWN if self.size is None else self.size


@dataclass(frozen=True, slots=True)
class _Variable:
    place: Place
    size: Size | None
    key: Size | None = None
    item: Size | None = None


class Estimator:
    """Estimates expressions over `self` and `oldSelf`, which are both at `root`."""

    def __init__(self, root: Node, sizes: SchemaSizes) -> None:
        self.root, self.sizes = root, sizes
        self.locals: dict[int, _Variable] = {}
        """Estimates by slot of the frame."""

    def cost(self, tree: syntax.Expr) -> int:
        return self.of(tree).cost

    def of(self, expr: syntax.Expr) -> Estimate:
        made: Estimate = _ESTIMATES[type(expr)](self, expr)
        return made

    # Sizes.

    def at(self, place: Place) -> Size | None:
        """Return what the schema says of a place."""
        if place is NOWHERE or place is LOST:
            return None
        return _EMPTY if not isinstance(place, Node) else Size(0, self.sizes.most(place))

    def below(self, place: Place, step: Callable[[Node], Place | None]) -> Place:
        if place is NOWHERE:
            return self.root
        return (step(place) if isinstance(place, Node) else None) or LOST

    def measured(self, place: Place, kind: Type, known: Size | None = None) -> Size | None:
        return self.at(place) or (_ONE if _is_scalar(kind) else known)

    # Nodes.

    def literal(self, expr: syntax.Literal) -> Estimate:
        return Estimate(0, size=Size(length := _length(expr.value), length))

    def ident(self, expr: syntax.Ident) -> Estimate:
        variable = self.locals.get(expr.slot)
        if variable is None:
            return Estimate(1, self.root, self.at(self.root))
        size = self.measured(variable.place, expr.type, variable.size)
        return Estimate(1, variable.place, size, variable.key, variable.item)

    def select(self, expr: syntax.Select) -> Estimate:
        operand = self.of(expr.operand)
        kind = expr.operand.type
        if expr.test:
            return Estimate(operand.cost, size=_ONE)
        if expr.optional:
            return Estimate(operand.cost + 1, size=self.measured(NOWHERE, expr.type))
        cost = operand.cost + (kind.name == "map" or kind.fields is not None)
        place = self.below(operand.place, lambda node: _field(node, expr.name, node is self.root))
        return Estimate(cost, place, self.measured(place, expr.type))

    def call(self, expr: syntax.Call) -> Estimate:
        target = None if expr.target is None else self.of(expr.target)
        args = [self.of(arg) for arg in expr.args]
        paid = sum(arg.cost for arg in args) + (0 if target is None else target.cost)
        if expr.name == "dyn" and target is None:
            return Estimate(paid + 1, size=args[0].size, key=args[0].key, item=args[0].item)
        if expr.name == "_[_]":
            return self.index(expr, args[0], paid)
        call = _Call(self, expr, target, args)
        made = [call.estimate(overload) for overload in expr.overloads]
        sizes = [size for _, size in made if size is not None]
        size = sizes[0] if sizes else self.measured(NOWHERE, expr.type)
        for other in sizes[1:]:
            size = other if size is None else size | other
        key, item = _both(args) if expr.name == "_+_" else (None, None)
        return Estimate(_cap(paid + max(cost for cost, _ in made)), size=size, key=key, item=item)

    def index(self, expr: syntax.Call, operand: Estimate, paid: int) -> Estimate:
        kind = expr.args[0].type.name
        if kind not in ("list", "map"):
            return Estimate(paid + 1, size=self.measured(NOWHERE, expr.type))
        place = self.below(operand.place, lambda node: node.items if kind == "list" else node.values)
        return Estimate(paid + 1, place, operand.item or self.measured(place, expr.type))

    def logic(self, expr: syntax.Logic) -> Estimate:
        return Estimate(_cap(self.of(expr.left).cost + self.of(expr.right).cost), size=_ONE)

    def cond(self, expr: syntax.Cond) -> Estimate:
        test, then, other = self.of(expr.test), self.of(expr.then), self.of(expr.other)
        key, item = _both([then, other])
        cost = _cap(test.cost + max(then.cost, other.cost))
        return Estimate(cost, size=then.sized | other.sized, key=key, item=item)

    def make_list(self, expr: syntax.MakeList) -> Estimate:
        items = [self.of(item) for item, _ in expr.items]
        count = len(items)
        cost = _cap(_LIST + sum(item.cost for item in items))
        return Estimate(cost, size=Size(count, count), key=_ONE, item=_union(items))

    def make_map(self, expr: syntax.MakeMap) -> Estimate:
        keys = [self.of(key) for key, _, _ in expr.entries]
        values = [self.of(value) for _, value, _ in expr.entries]
        count = len(keys)
        cost = _cap(_MAP + sum(entry.cost for entry in (*keys, *values)))
        return Estimate(cost, size=Size(count, count), key=_union(keys), item=_union(values))

    def make_object(self, expr: syntax.MakeObject) -> Estimate:
        return Estimate(_cap(_OBJECT + sum(self.of(value).cost for _, value, _ in expr.entries)))

    def fold(self, expr: syntax.Fold) -> Estimate:
        over = self.of(expr.range)
        self.bind_turn(expr, over)
        test = 0 if expr.test is None else self.of(expr.test).cost
        result = None if expr.result is None else self.of(expr.result)
        once, turn = _turn(expr, test, 0 if result is None else result.cost)
        cost = _cap(over.cost + once + over.sized.most * turn)
        if expr.macro in ("all", "exists", "exists_one"):
            return Estimate(cost, size=_ONE)
        if expr.macro in ("transformMap", "transformMapEntry"):
            return Estimate(cost, size=over.sized)
        kept = self.kept(expr) if result is None else result.sized
        return Estimate(cost, size=over.sized, key=_ONE, item=_EMPTY | kept)

    def kept(self, expr: syntax.Fold) -> Size:
        """Estimate an item that a filter lets through."""
        variable, kind = self.locals[expr.slots[0]], expr.type.params[0] if expr.type.params else DYN
        return self.measured(variable.place, kind, variable.size) or _UNKNOWN

    def bind_turn(self, expr: syntax.Fold, over: Estimate) -> None:
        """Bind the variables of a loop: the items of a list, the keys of a map, or with two of them both."""
        is_list = expr.range.type.name == "list"
        items = self.below(over.place, lambda node: node.items if is_list else node.values)
        keys = self.below(over.place, lambda node: None if is_list or node.values is None else KEY)
        value, key = _Variable(items, over.item), _Variable(keys, over.key)
        if len(expr.slots) == 2:
            self.locals[expr.slots[0]], self.locals[expr.slots[1]] = key, value
        else:
            self.locals[expr.slots[0]] = value if is_list else key

    def bind(self, expr: syntax.Bind) -> Estimate:
        init = self.of(expr.init)
        optional = expr.macro != "bind"
        self.locals[expr.slot] = _Variable(
            NOWHERE if optional else init.place,
            None if optional else init.size,
            None if optional else init.key,
            None if optional else init.item,
        )
        body = self.of(expr.body)
        if optional:  # whether there is a value, the value, and what is made of it
            return Estimate(_cap(2 * (init.cost + 1) + _LIST + body.cost + 1))
        return Estimate(_cap(_LIST + init.cost + body.cost), size=body.size, key=body.key, item=body.item)


def _turn(expr: syntax.Fold, test: int, result: int) -> tuple[int, int]:
    """Return what a macro costs once and in each turn: it stands for a loop that reads and sets an accumulator."""
    match expr.macro:
        case "all":
            return 1, test + 3
        case "exists":
            return 1, test + 4
        case "exists_one":
            return 2, test + 2
        case "filter":
            return _LIST + 1, test + 1 + (1 + _LIST) + 1
        case "transformMap":
            return _MAP + 1, test + result + 3
        case "transformMapEntry":
            return _MAP + 1, test + result + 2
    return _LIST + 1, test + 1 + (result + _LIST) + 1


def _is_scalar(kind: Type) -> bool:
    if kind.name == "optional_type" and kind.params:
        return _is_scalar(kind.params[0])
    return kind.name in _SCALARS


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes) else 1


def _union(items: list[Estimate]) -> Size:
    """Return the sizes of the entries of a literal."""
    if not items:
        return _EMPTY
    made = items[0].sized
    for item in items[1:]:
        made = made | item.sized
    return made


def _both(parts: list[Estimate]) -> tuple[Size | None, Size | None]:
    """Return the sizes of the entries of what is one of two lists or maps, or both of them together."""
    if any(part.key is None or part.item is None for part in parts):
        return None, None
    keys = [part.key for part in parts if part.key is not None]
    items = [part.item for part in parts if part.item is not None]
    return keys[0] | keys[1], items[0] | items[1]


_PLAIN_TEXT = Node(type="string")
_IDENTITY = Node(type="object", properties={"name": _PLAIN_TEXT, "generateName": _PLAIN_TEXT})
"""The metadata that expressions see."""


def _field(node: Node, name: str, is_root: bool) -> Node | None:
    if name == "metadata" and (is_root or node.embedded):
        declared: Node | None = getattr(node.checks, "metadata", None)
        known = set() if declared is None else declared.properties.keys()
        return declared if {"name", "generateName"} <= known else _IDENTITY
    return None if node.values is not None else node.properties.get(name)


class _Call:
    """The estimate of a call, by overload; without what its arguments cost."""

    def __init__(self, estimator: Estimator, expr: syntax.Call, target: Estimate | None, args: list[Estimate]) -> None:
        self.estimator, self.expr, self.target, self.args = estimator, expr, target, args

    def estimate(self, overload: Overload) -> tuple[int, Size | None]:
        """Return the cost, and the size of the result where the function decides it."""
        made = _FUNCTIONS.get(self.expr.name)
        return (1, None) if made is None else made(self, overload)

    @property
    def receiver(self) -> Size:
        assert self.target is not None
        return self.target.sized

    def item(self) -> Size:
        """Estimate of an item of the list that the function is called on."""
        assert self.target is not None
        place = self.estimator.below(self.target.place, lambda node: node.items)
        found = None if self.target.place is NOWHERE else self.estimator.at(place)
        return _UNKNOWN if found is None else found

    def search(self, overload: Overload) -> tuple[int, Size | None]:
        """Functions that go once through a list or a text."""
        if overload.params[0].name != "list":
            return self.receiver.cost(), None
        assert self.expr.target is not None
        kind = self.expr.target.type
        texts = bool(kind.params) and kind.params[0].name in _TEXT
        each = 1 + (self.item().cost() if texts else 0)
        return _cap(self.receiver.most * each), None

    def same_length(self, _: Overload) -> tuple[int, Size | None]:
        return self.receiver.cost(), self.receiver

    def url(self, _: Overload) -> tuple[int, Size | None]:
        return self.args[0].sized.cost(), self.args[0].sized

    def replace(self, _: Overload) -> tuple[int, Size | None]:
        text, old, new = self.receiver, self.args[0].sized, self.args[1].sized
        return text.cost(2 * _CHARACTER), Size(_replaced_least(text, old, new), _replaced_most(text, old, new))

    def split(self, _: Overload) -> tuple[int, Size | None]:
        most = self.receiver.most
        limit = self.expr.args[1] if len(self.expr.args) > 1 else None
        if isinstance(limit, syntax.Literal) and type(limit.value) is int:
            most = limit.value % (UNLIMITED + 1)
        return self.receiver.cost(2 * _CHARACTER), Size(0, most)

    def join(self, _: Overload) -> tuple[int, Size | None]:
        count = self.receiver
        size = count * self.item()
        if self.args:
            gaps = Size(max(count.least - 1, 0), max(count.most - 1, 0))
            size = size + self.args[0].sized * gaps
        return size.cost(), size

    def find(self, _: Overload) -> tuple[int, Size | None]:
        return _matching(self.receiver, self.args[0].sized), Size(0, self.receiver.most)

    def matches(self, _: Overload) -> tuple[int, Size | None]:
        if self.target is None:
            return 1, None
        return _matching(self.receiver, self.args[0].sized), None

    def contains(self, _: Overload) -> tuple[int, Size | None]:
        return _cap(self.receiver.cost() * self.args[0].sized.cost()), None

    def affix(self, _: Overload) -> tuple[int, Size | None]:
        return self.args[0].sized.cost(), None

    def formatted(self, _: Overload) -> tuple[int, Size | None]:
        return self.receiver.cost(), None

    def quote(self, _: Overload) -> tuple[int, Size | None]:
        size = self.args[0].sized
        return size.cost(), Size(size.least + 2, _cap(2 * size.most + 2))

    def to_bytes(self, overload: Overload) -> tuple[int, Size | None]:
        size = self.args[0].sized
        if overload.params[0].name != "string":
            return 1, None
        return size.cost(), Size(size.least, _cap(4 * size.most))

    def to_string(self, overload: Overload) -> tuple[int, Size | None]:
        size = self.args[0].sized
        if overload.params[0].name != "bytes":
            return 1, None
        return size.cost(), Size(size.least // 4, size.most)

    def validate(self, _: Overload) -> tuple[int, Size | None]:
        return _cap(math.ceil(self.args[0].sized.cost() * _FORMAT_PATTERN * _PATTERN_CHARACTER)), None

    def contains_address(self, overload: Overload) -> tuple[int, Size | None]:
        cost = Size(0, 2 * _ADDRESS_BYTES).cost()
        if self.expr.name == "containsCIDR":
            cost += Size(0, _ADDRESS_BYTES).cost() + 1
        return cost + (self.args[0].sized.cost() if overload.params[1].name == "string" else 0), None

    def member_of(self, overload: Overload) -> tuple[int, Size | None]:
        return (self.args[1].sized.cost(1) if overload.params[1].name == "list" else 1), None

    def add(self, overload: Overload) -> tuple[int, Size | None]:
        if overload.params[0].name not in _COUNTED:
            return 1, None
        size = self.args[0].sized + self.args[1].sized
        return (1 if overload.params[0].name == "list" else size.cost()), size

    def order(self, overload: Overload) -> tuple[int, Size | None]:
        return (self.compared() if overload.params[0].name in _TEXT else 1), None

    def compared(self) -> int:
        return Size(0, min(self.args[0].sized.most, self.args[1].sized.most)).cost()

    def equal(self, _: Overload) -> tuple[int, Size | None]:
        left, right = (arg.type for arg in self.expr.args)
        fixed = _EQUALITY.get(left.name) if left == right and self.expr.name == "_==_" else None
        if fixed is not None:
            return fixed, None
        if left.name == right.name == "kubernetes.URL" and self.expr.name == "_==_":
            return (self.args[1].size or _ONE).cost(), None
        return self.compared(), None

    def sets(self, _: Overload) -> tuple[int, Size | None]:
        each = 2 if self.expr.name == "sets.equivalent" else 1
        return _cap((self.args[0].sized * self.args[1].sized).cost(each) + 1), None


def _matching(text: Size, pattern: Size) -> int:
    return _cap((text + _ONE).cost() * pattern.cost(_PATTERN_CHARACTER))


def _replaced_most(text: Size, old: Size, new: Size) -> int:
    """Return the longest result: an empty text is found everywhere, and the shortest one is found most often."""
    if old.least == 0:
        return _cap((text.most + 1) * new.most + text.most)
    if new.most <= old.least:
        return text.most
    return _cap(math.ceil(text.most / old.least) * new.most)


def _replaced_least(text: Size, old: Size, new: Size) -> int:
    if old.most == 0:
        return _cap((text.least + 1) * new.least + text.least)
    if old.most <= new.least:
        return text.least
    return _cap(math.ceil(text.least / old.most) * new.least)


_EQUALITY = {
    "net.IP": 1,
    "net.CIDR": 1,
    "kubernetes.Quantity": 1,
    "kubernetes.Semver": 1,
    "kubernetes.NamedFormat": Size(0, _FORMAT_NAME).cost(),
}
_Function = Callable[[_Call, Overload], tuple[int, Size | None]]
_FUNCTIONS: dict[str, _Function] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _Call.search),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _Call.same_length),
    **dict.fromkeys(("find", "findAll"), _Call.find),
    **dict.fromkeys(("startsWith", "endsWith"), _Call.affix),
    **dict.fromkeys(("containsIP", "containsCIDR"), _Call.contains_address),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _Call.order),
    **dict.fromkeys(("_==_", "_!=_"), _Call.equal),
    "url": _Call.url,
    "replace": _Call.replace,
    "split": _Call.split,
    "join": _Call.join,
    "matches": _Call.matches,
    "contains": _Call.contains,
    "format": _Call.formatted,
    "strings.quote": _Call.quote,
    "bytes": _Call.to_bytes,
    "string": _Call.to_string,
    "validate": _Call.validate,
    "@in": _Call.member_of,
    "_+_": _Call.add,
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _Call.sets),
}
"""Functions whose cost depends on sizes; all others cost 1."""
_ESTIMATES: dict[type[syntax.Expr], Any] = {
    syntax.Literal: Estimator.literal,
    syntax.Ident: Estimator.ident,
    syntax.Select: Estimator.select,
    syntax.Call: Estimator.call,
    syntax.Logic: Estimator.logic,
    syntax.Cond: Estimator.cond,
    syntax.MakeList: Estimator.make_list,
    syntax.MakeMap: Estimator.make_map,
    syntax.MakeObject: Estimator.make_object,
    syntax.Fold: Estimator.fold,
    syntax.Bind: Estimator.bind,
}
