"""Go's text/template, for -o go-template: execution. Parsing is in gotemplate_parser, functions have their own file.

Templates are executed against plain JSON data. Where Go stops because of its types (an integer against a float), this
continues if the meaning is clear; errors have Go's text, with line and column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from karmada.cli.output.gotemplate_functions import FUNCTIONS, MISSING, FunctionError, printed, truth
from karmada.cli.output.gotemplate_parser import NAME, Command, Node, Operand, Parser, Pipe, TemplateError, line_of

__all__ = ["Template", "TemplateError", "parse"]
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Template:
    text: str
    nodes: dict[str, list[Node]]

    def render(self, data: Any, *, allow_missing: bool = True) -> str:
        """TemplateError when it cannot be executed."""
        return _Execution(self, allow_missing).render(data)


def parse(text: str) -> Template:
    return Template(text, Parser(text).template())


# execution


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Execution:
    def __init__(self, template: Template, allow_missing: bool) -> None:
        self.template = template
        self.allow_missing = allow_missing
        self.out: list[str] = []
        self.variables: list[tuple[str, Any]] = []
        self.name = NAME
        self.depth = 0

    def render(self, data: Any) -> str:
        self.variables = [("$", data)]
        self.walk(self.template.nodes[NAME], data)
        return "".join(self.out)

    def fail(self, why: str, at: int, source: str) -> TemplateError:
        text = self.template.text
        column = at - (text.rfind("\n", 0, at) + 1)
        place = f"{NAME}:{line_of(text, at)}:{column}"
        return TemplateError(f'template: {place}: executing "{self.name}" at <{source}>: {why}')

    def walk(self, nodes: list[Node], dot: Any) -> None:
        for node in nodes:
            if node.kind == "text":
                self.out.append(node.text)
            elif node.kind == "action":
                assert node.pipe is not None
                value = self.evaluate(node.pipe, dot)
                if not node.pipe.variables:
                    self.out.append(printed(value))
            elif node.kind in ("if", "with"):
                self.choose(node, dot)
            elif node.kind == "range":
                self.range(node, dot)
            elif node.kind == "template":
                self.call(node, dot)
            else:
                raise _Break if node.kind == "break" else _Continue

    def choose(self, node: Node, dot: Any) -> None:
        assert node.pipe is not None
        scope = len(self.variables)
        value = self.evaluate(node.pipe, dot)
        if truth(value):
            self.walk(node.body, value if node.kind == "with" else dot)
        else:
            self.walk(node.otherwise, dot)
        del self.variables[scope:]

    def range(self, node: Node, dot: Any) -> None:
        assert node.pipe is not None
        scope = len(self.variables)
        value = self.evaluate(node.pipe, dot, bind=False)
        pairs = self.pairs(value, node)
        for key, item in pairs:
            try:
                self.bind(node.pipe, key, item)
                self.walk(node.body, item)
            except _Continue:
                continue
            except _Break:
                break
            finally:
                if node.pipe.declares:
                    del self.variables[scope:]
        if not pairs:
            self.walk(node.otherwise, dot)
        del self.variables[scope:]

    def pairs(self, value: Any, node: Node) -> list[tuple[Any, Any]]:
        if value is None or value is MISSING:
            return []
        if isinstance(value, dict):
            return [(key, value[key]) for key in sorted(value)]
        if isinstance(value, list):
            return list(enumerate(value))
        if isinstance(value, int) and not isinstance(value, bool):
            return [(number, number) for number in range(value)]
        assert node.pipe is not None
        command = node.pipe.commands[0]
        raise self.fail(f"range can't iterate over {printed(value)}", command.at, command.source)

    def bind(self, pipe: Pipe, key: Any, item: Any) -> None:
        values = {1: (item,), 2: (key, item)}.get(len(pipe.variables), ())
        for name, value in zip(pipe.variables, values, strict=True):
            self.set(name, value, declare=pipe.declares)

    def call(self, node: Node, dot: Any) -> None:
        body = self.template.nodes.get(node.text)
        if body is None:
            raise self.fail(f'template "{node.text}" not defined', node.at, f'{{{{template "{node.text}"}}}}')
        if self.depth > _MAX_DEPTH:
            raise self.fail(
                f"exceeded maximum template depth ({_MAX_DEPTH})", node.at, f'{{{{template "{node.text}"}}}}'
            )
        value = self.evaluate(node.pipe, dot) if node.pipe is not None else None
        outer = self.variables, self.name
        self.variables, self.name = [("$", value)], node.text
        self.depth += 1
        self.walk(body, value)
        self.depth -= 1
        self.variables, self.name = outer

    def set(self, name: str, value: Any, *, declare: bool) -> None:
        if declare:
            self.variables.append((name, value))
            return
        for place in range(len(self.variables) - 1, -1, -1):
            if self.variables[place][0] == name:
                self.variables[place] = (name, value)
                return

    def evaluate(self, pipe: Pipe, dot: Any, *, bind: bool = True) -> Any:
        value: Any = None
        for number, command in enumerate(pipe.commands):
            value = self.run(command, dot, [value] if number else [])
        if bind:
            for name in pipe.variables:
                self.set(name, value, declare=pipe.declares)
        return value

    def run(self, command: Command, dot: Any, piped: list[Any]) -> Any:
        first, *rest = command.operands
        if first.kind == "function" and not first.fields:
            return self.function(command, rest, dot, piped)
        if rest or piped:
            if first.kind in ("nil", "constant", "pipe") and not first.fields:
                raise self.fail(f"can't give argument to non-function {first.source}", command.at, command.source)
            name = first.fields[-1] if first.fields else first.source
            raise self.fail(f"{name} is not a method but has arguments", first.at, first.source)
        if first.kind == "nil":
            raise self.fail("nil is not a command", first.at, first.source)
        return self.operand(first, dot)

    def function(self, command: Command, rest: list[Operand], dot: Any, piped: list[Any]) -> Any:
        name = command.operands[0].value
        if name in ("and", "or"):
            return self.short_circuit(name, rest, dot, piped, command)
        arguments = [self.operand(operand, dot) for operand in rest] + piped
        try:
            return FUNCTIONS[name](*arguments)
        except FunctionError as error:
            message = f"error calling {name}: {error}" if error.calling else str(error)
            raise self.fail(message, command.at, command.source) from error
        except TypeError as error:
            raise self.fail(f"wrong number of args for {name}: got {len(arguments)}", command.at, name) from error

    def short_circuit(self, name: str, rest: list[Operand], dot: Any, piped: list[Any], command: Command) -> Any:
        if not rest and not piped:
            raise self.fail(f"wrong number of args for {name}: want at least 1 got 0", command.at, name)
        value: Any = None
        for operand in rest:
            value = self.operand(operand, dot)
            if truth(value) == (name == "or"):
                return value
        return piped[0] if piped else value

    def operand(self, operand: Operand, dot: Any) -> Any:
        value: Any
        if operand.kind == "dot":
            value = dot
        elif operand.kind == "variable":
            value = next(found for name, found in reversed(self.variables) if name == operand.value)
        elif operand.kind == "pipe":
            value = self.evaluate(operand.value, dot)
        elif operand.kind == "function":
            value = self.function(Command([operand], operand.at, operand.source), [], dot, [])
        else:
            return operand.value
        for name in operand.fields:
            value = self.field(value, name, operand)
        return value

    def field(self, value: Any, name: str, operand: Operand) -> Any:
        if isinstance(value, dict):
            if name in value:
                return value[name]
            if self.allow_missing:
                return MISSING
            raise self.fail(f'map has no entry for key "{name}"', operand.at, operand.source)
        if value is MISSING or value is None:
            if self.allow_missing and value is MISSING:
                return MISSING
            raise self.fail(f'nil data; no entry for key "{name}"', operand.at, operand.source)
        raise self.fail(f"can't evaluate field {name} in type interface {{}}", operand.at, operand.source)
