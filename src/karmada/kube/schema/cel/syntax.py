"""From text to a syntax tree: one regular expression cuts tokens, a recursive descent parser joins them.

Macros (has, all, map, cel.bind, ...) become nodes of their own instead of being expanded into the generic fold that the
language defines them by: a loop over a node is both shorter to compile and faster to run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from karmada.kube.schema.cel import types
from karmada.kube.schema.cel.types import Type
from karmada.kube.schema.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint


class SyntaxIssue(Exception):
    """One thing wrong with the text of an expression, at an offset."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


@dataclass(slots=True, eq=False)
class Expr:
    pos: int
    type: Type = field(default=types.DYN, init=False)
    """Set by the checker."""


@dataclass(slots=True, eq=False)
class Literal(Expr):
    value: Any
    kind: Type


@dataclass(slots=True, eq=False)
class Ident(Expr):
    name: str
    slot: int = field(default=-1, init=False)


@dataclass(slots=True, eq=False)
class Select(Expr):
    operand: Expr
    name: str
    optional: bool = False
    test: bool = False
    """has(): whether the field is present."""


@dataclass(slots=True, eq=False)
class Call(Expr):
    name: str
    target: Expr | None
    args: list[Expr]
    overloads: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Logic(Expr):
    """&& and ||, which absorb an error of one side when the other side decides."""

    is_and: bool
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Cond(Expr):
    test: Expr
    then: Expr
    other: Expr


@dataclass(slots=True, eq=False)
class MakeList(Expr):
    items: list[tuple[Expr, bool]]
    mixed: bool = field(default=False, init=False)
    """Its items may be of different types (the arguments of format)."""


@dataclass(slots=True, eq=False)
class MakeMap(Expr):
    entries: list[tuple[Expr, Expr, bool]]


@dataclass(slots=True, eq=False)
class MakeObject(Expr):
    """An object of a named type: `Object.spec{replicas: 1}`."""

    name: str
    entries: list[tuple[Token, Expr, bool]]


@dataclass(slots=True, eq=False)
class Fold(Expr):
    """A macro that runs over a list or map: all, exists, exists_one, map, filter, transform..."""

    macro: str
    range: Expr
    names: tuple[str, ...]
    test: Expr | None
    result: Expr | None
    slots: tuple[int, ...] = field(default=(), init=False)


@dataclass(slots=True, eq=False)
class Bind(Expr):
    """cel.bind, and (with `macro` optMap or optFlatMap) the same over an optional's value."""

    macro: str
    name: str
    init: Expr
    body: Expr
    slot: int = field(default=-1, init=False)


class Token(NamedTuple):
    kind: str
    text: str
    pos: int


_TOKENS = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
    |(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<string>(?:[rR][bB]?|[bB][rR]?)?(?:\"\"\"(?:[^\\]|\\[\s\S])*?\"\"\"|'''(?:[^\\]|\\[\s\S])*?'''
        |"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'))
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<op>\|\||&&|==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE,
)
_RAW_STRING = re.compile(r"""(?:[rR][bB]?|[bB][rR])(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|"[^"\n\r]*"|'[^'\n\r]*')""")
RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while",
})  # fmt: skip
_CONSTANTS: dict[str, tuple[Any, Type]] = {
    "true": (True, types.BOOL),
    "false": (False, types.BOOL),
    "null": (None, types.NULL),
}
_LEVELS: list[dict[str, str]] = [
    {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"},
    {"+": "_+_", "-": "_-_"},
    {"*": "_*_", "/": "_/_", "%": "_%_"},
]
_FOLDS = {
    ("all", 2), ("exists", 2), ("exists_one", 2), ("existsOne", 2), ("map", 2), ("map", 3), ("filter", 2),
    ("all", 3), ("exists", 3), ("exists_one", 3), ("existsOne", 3), ("transformList", 3), ("transformList", 4),
    ("transformMap", 3), ("transformMap", 4), ("transformMapEntry", 3), ("transformMapEntry", 4),
}  # fmt: skip


_OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
"""How the reference parser lists the tokens that an operand may begin with."""
_OPERAND_KINDS = frozenset({"int", "uint", "float", "string", "name"})


def tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _RAW_STRING.match(text, position)
        if match:
            tokens.append(Token("string", match[0], position))
            position = match.end()
            continue
        match = _TOKENS.match(text, position)
        if match is None:
            raise SyntaxIssue(position, f"Syntax error: token recognition error at: '{text[position]}'")
        if match.lastgroup != "space":
            tokens.append(Token(str(match.lastgroup), match[0], position))
        position = match.end()
    tokens.append(Token("end", "<EOF>", len(text)))
    return tokens


_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([\s\S]))")


def _unquote(token: Token) -> tuple[str | bytes, Type]:
    body = token.text.lstrip("rRbB")
    prefix = token.text[: len(token.text) - len(body)].lower()
    width = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    body = body[width:-width]
    is_bytes = "b" in prefix
    if "r" in prefix or "\\" not in body:
        return (body.encode(), types.BYTES) if is_bytes else (body, types.STRING)
    parts: list[bytes] = []
    position = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[position : match.start()].encode())
        parts.append(_escape(match, is_bytes, token))
        position = match.end()
    parts.append(body[position:].encode())
    joined = b"".join(parts)
    return (joined, types.BYTES) if is_bytes else (joined.decode(), types.STRING)


def _escape(match: re.Match[str], is_bytes: bool, token: Token) -> bytes:
    hex2, hex4, hex8, octal, single = match.groups()
    if single is not None:
        if single not in _ESCAPES:
            raise SyntaxIssue(token.pos, f"Syntax error: unable to unescape string {token.text}")
        return _ESCAPES[single].encode()
    code = int(octal, 8) if octal else int(hex2 or hex4 or hex8, 16)
    if is_bytes:
        if hex4 or hex8 or code > 255:
            raise SyntaxIssue(token.pos, f"Syntax error: unable to unescape string {token.text}")
        return bytes([code])
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise SyntaxIssue(token.pos, f"Syntax error: unable to unescape string {token.text}")
    return chr(code).encode()


class Parser:
    def __init__(self, text: str) -> None:
        self.tokens = tokenize(text)
        self.index = 0

    def parse(self) -> Expr:
        expr = self.expression()
        if self.peek.kind != "end":
            raise self.unexpected("<EOF>", superfluous=self.tokens[self.index + 1].kind == "end")
        return expr

    @property
    def peek(self) -> Token:
        return self.tokens[self.index]

    def next(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def accept(self, text: str) -> Token | None:
        token = self.tokens[self.index]
        if token.text == text and token.kind in ("op", "name"):
            self.index += 1
            return token
        return None

    def expect(self, text: str) -> Token:
        token = self.accept(text)
        if token is None and self.peek.kind == "end":
            raise SyntaxIssue(self.peek.pos, f"Syntax error: missing '{text}' at '<EOF>'")
        if token is None:
            raise self.unexpected(f"'{text}'")
        return token

    def unexpected(self, wanted: str, *, superfluous: bool = False) -> SyntaxIssue:
        """Return the error for a token that may not stand here, or is superfluous if the text goes on without it."""
        token, what = self.peek, "extraneous" if superfluous else "mismatched"
        return SyntaxIssue(token.pos, f"Syntax error: {what} input '{token.text}' expecting {wanted}")

    def not_an_operand(self) -> SyntaxIssue:
        follows = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        superfluous = follows.kind in _OPERAND_KINDS or follows.text in ("[", "{", "(", ".", "-", "!")
        return self.unexpected(_OPERAND, superfluous=self.peek.kind != "end" and superfluous)

    def expression(self) -> Expr:
        expr = self.either()
        mark = self.accept("?")
        if mark:
            then = self.either()
            self.expect(":")
            expr = Cond(mark.pos, expr, then, self.expression())
        return expr

    def either(self) -> Expr:
        expr = self.both()
        while mark := self.accept("||"):
            expr = Logic(mark.pos, False, expr, self.both())
        return expr

    def both(self) -> Expr:
        expr = self.binary(0)
        while mark := self.accept("&&"):
            expr = Logic(mark.pos, True, expr, self.binary(0))
        return expr

    def binary(self, level: int) -> Expr:
        if level == len(_LEVELS):
            return self.unary()
        expr = self.binary(level + 1)
        operators = _LEVELS[level]
        while self.peek.kind in ("op", "name") and self.peek.text in operators:
            token = self.next()
            expr = Call(token.pos, operators[token.text], None, [expr, self.binary(level + 1)])
        return expr

    def unary(self) -> Expr:
        token = self.peek
        if token.kind != "op" or token.text not in ("!", "-"):
            return self.member()
        count = 0
        while self.accept(token.text):
            count += 1
        if token.text == "-" and count == 1 and self.peek.kind in ("int", "float"):
            number = self.number(self.next(), "-")
            return self.suffixes(number)
        operand = self.member()
        for _ in range(count % 2 or (2 if count else 0)):
            operand = Call(token.pos, "!_" if token.text == "!" else "-_", None, [operand])
        return operand

    def member(self) -> Expr:
        return self.suffixes(self.primary())

    def suffixes(self, expr: Expr) -> Expr:
        while True:
            if mark := self.accept("."):
                optional = self.accept("?") is not None
                name = self.name()
                if not optional and self.accept("("):
                    expr = self.method(expr, name, self.arguments(")"))
                else:
                    expr = Select(mark.pos, expr, name.text, optional)
            elif mark := self.accept("["):
                optional = self.accept("?") is not None
                index = self.expression()
                self.expect("]")
                expr = Call(mark.pos, "_[?_]" if optional else "_[_]", None, [expr, index])
            elif self.peek.text == "{" and (made := _dotted(expr)):
                mark = self.next()
                expr = MakeObject(mark.pos, made, self.object_entries())
            else:
                return expr

    def name(self) -> Token:
        token = self.next()
        if token.kind != "name" or token.text in _CONSTANTS or token.text == "in":
            self.index -= 1
            raise self.unexpected("IDENTIFIER")
        return token

    def arguments(self, closing: str) -> list[Expr]:
        args: list[Expr] = []
        while not self.accept(closing):
            args.append(self.expression())
            if not self.accept(","):
                self.expect(closing)
                break
        return args

    def primary(self) -> Expr:
        token = self.next()
        if token.kind in ("int", "uint", "float"):
            return self.number(token)
        if token.kind == "string":
            value, kind = _unquote(token)
            return Literal(token.pos, value, kind)
        if token.kind == "name":
            return self.named(token)
        if token.text == "(":
            expr = self.expression()
            self.expect(")")
            return expr
        if token.text == "[":
            return MakeList(token.pos, self.list_items())
        if token.text == "{":
            return MakeMap(token.pos, self.map_entries())
        if token.text == "." and self.peek.kind == "name":
            return self.named(self.next())
        self.index -= 1
        raise self.not_an_operand()

    def named(self, token: Token) -> Expr:
        if token.text in _CONSTANTS:
            return Literal(token.pos, *_CONSTANTS[token.text])
        if token.text == "in":
            self.index -= 1
            raise self.not_an_operand()
        if token.text in RESERVED:
            raise SyntaxIssue(token.pos, f"reserved identifier: {token.text}")
        if not self.accept("("):
            return Ident(token.pos, token.text)
        args = self.arguments(")")
        if token.text == "has" and len(args) == 1:
            return self.has(token, args[0])
        return Call(token.pos, token.text, None, args)

    @staticmethod
    def has(token: Token, arg: Expr) -> Expr:
        if not isinstance(arg, Select):
            raise SyntaxIssue(token.pos, "invalid argument to has() macro")
        return Select(arg.pos, arg.operand, arg.name, arg.optional, test=True)

    @staticmethod
    def number(token: Token, sign: str = "") -> Expr:
        if token.kind == "float":
            return Literal(token.pos, float(sign + token.text), types.DOUBLE)
        if token.kind == "uint":
            value = int(token.text[:-1], 0) if token.text.startswith("0x") else int(token.text[:-1])
            if value > UINT_MAX:
                raise SyntaxIssue(token.pos, "invalid uint literal")
            return Literal(token.pos, Uint(value), types.UINT)
        value = int(token.text, 16) if token.text.startswith("0x") else int(token.text)
        value = -value if sign else value
        if not INT_MIN <= value <= INT_MAX:
            raise SyntaxIssue(token.pos, "invalid int literal")
        return Literal(token.pos, value, types.INT)

    def list_items(self) -> list[tuple[Expr, bool]]:
        items: list[tuple[Expr, bool]] = []
        while not self.accept("]"):
            optional = self.accept("?") is not None
            items.append((self.expression(), optional))
            if not self.accept(","):
                self.expect("]")
                break
        return items

    def map_entries(self) -> list[tuple[Expr, Expr, bool]]:
        entries: list[tuple[Expr, Expr, bool]] = []
        while not self.accept("}"):
            optional = self.accept("?") is not None
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self.accept(","):
                self.expect("}")
                break
        return entries

    def object_entries(self) -> list[tuple[Token, Expr, bool]]:
        entries: list[tuple[Token, Expr, bool]] = []
        while not self.accept("}"):
            optional = self.accept("?") is not None
            name = self.name()
            self.expect(":")
            entries.append((name, self.expression(), optional))
            if not self.accept(","):
                self.expect("}")
                break
        return entries

    def method(self, target: Expr, name: Token, args: list[Expr]) -> Expr:
        if (name.text, len(args)) in _FOLDS:
            return self.fold(target, name, args)
        if name.text in ("optMap", "optFlatMap") and len(args) == 2:
            return Bind(name.pos, name.text, self.variable(args[0]), target, args[1])
        if name.text == "bind" and len(args) == 3 and isinstance(target, Ident) and target.name == "cel":
            return Bind(name.pos, "bind", self.variable(args[0]), args[1], args[2])
        return Call(name.pos, name.text, target, args)

    def fold(self, target: Expr, name: Token, args: list[Expr]) -> Expr:
        macro = "exists_one" if name.text == "existsOne" else name.text
        one = macro in ("map", "filter") or len(args) == 2
        variables = tuple(self.variable(arg) for arg in args[: 1 if one else 2])
        if len(set(variables)) != len(variables):
            raise SyntaxIssue(name.pos, "overlapping iteration variable names")
        rest = args[len(variables) :]
        if macro in ("map", "transformList", "transformMap", "transformMapEntry"):
            test, result = (rest[0], rest[1]) if len(rest) == 2 else (None, rest[0])
        else:
            test, result = rest[0], None
        return Fold(name.pos, macro, target, variables, test, result)

    @staticmethod
    def variable(expr: Expr) -> str:
        if not isinstance(expr, Ident):
            raise SyntaxIssue(expr.pos, "argument must be a simple name")
        return expr.name


def _dotted(expr: Expr) -> str:
    """Return the name that an expression made of nothing but names spells; "" for any other."""
    if isinstance(expr, Ident):
        return expr.name
    if isinstance(expr, Select) and not expr.optional and not expr.test:
        prefix = _dotted(expr.operand)
        return f"{prefix}.{expr.name}" if prefix else ""
    return ""


def parse(text: str) -> Expr:
    return Parser(text).parse()
