"""The grammar of shell scripts that simulated containers understand: from words to commands in commands.

Lists (; && || and line ends), pipelines and !, if, while, until, for, { } and ( ), redirections to files and to the
other stream. No case, no functions, no jobs, no here-documents: whoever writes one gets a syntax error, not a wrong
answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from karmada.kube.sim.kubelet.shell_words import DEEPEST, Incomplete, ScriptError, Word, split

_UNSUPPORTED = frozenset({"case", "function", "esac", "select"})
_ENDS = frozenset({"then", "elif", "else", "fi", "do", "done", "}"})
_REDIRECTIONS = {
    ">": (1, False), "1>": (1, False), ">>": (1, True), "1>>": (1, True),
    "2>": (2, False), "2>>": (2, True), "<": (0, False),
}  # fmt: skip
_DUPLICATES = {"2>&1": (2, 1), ">&2": (1, 2), "1>&2": (1, 2), ">&1": (1, 1)}


@dataclass(slots=True)
class Redirection:
    """`stream` goes to the file that `target` names, or to where another stream goes at that time."""

    stream: int
    target: Word | int
    append: bool = False


@dataclass(slots=True)
class Simple:
    words: list[Word] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(slots=True)
class Sequence:
    """Commands, each with how it is joined to the one before: ";", "&&" or "||"."""

    items: list[tuple[str, Pipeline]] = field(default_factory=list)


@dataclass(slots=True)
class Pipeline:
    commands: list[Command]
    negated: bool = False


@dataclass(slots=True)
class If:
    branches: list[tuple[Sequence, Sequence]]
    otherwise: Sequence | None = None
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(slots=True)
class Loop:
    condition: Sequence
    body: Sequence
    until: bool
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(slots=True)
class For:
    name: str
    words: list[Word]
    body: Sequence
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    body: Sequence
    subshell: bool
    redirections: list[Redirection] = field(default_factory=list)


Command: TypeAlias = Simple | If | Loop | For | Group


def parse(script: str) -> Sequence:
    """Incomplete when the script only ends too early; ScriptError for what this shell does not understand."""
    reader = _Reader(list(split(script)))
    found = reader.sequence(frozenset())
    if reader.here is not None:
        raise reader.unexpected()
    return found


class _Reader:
    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._at = 0
        self._depth = 0

    @property
    def here(self) -> Word | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def unexpected(self) -> ScriptError:
        word = self.here
        if word is None:
            return Incomplete()
        shown = "newline" if word.plain == "\n" else word.plain or "word"
        return ScriptError(f'syntax error: unexpected "{shown}"')

    def _is(self, *texts: str) -> bool:
        return self.here is not None and self.here.plain in texts

    def _is_operator(self, *texts: str) -> bool:
        return self.here is not None and self.here.operator and self.here.plain in texts

    def _take(self) -> Word:
        word = self.here
        if word is None:
            raise Incomplete
        self._at += 1
        return word

    def _expect(self, text: str) -> None:
        if not self._is(text):
            raise self.unexpected()
        self._at += 1

    def _skip_lines(self) -> None:
        while self._is_operator("\n"):
            self._at += 1

    # commands

    def sequence(self, ends: frozenset[str]) -> Sequence:
        """Up to one of the words in `ends`, or the end of the script."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise ScriptError("syntax error: nested too deeply")
        found = Sequence()
        self._skip_lines()
        while self.here is not None and not self._is(*ends):
            found.items.append((";", self._pipeline()))
            while self._is_operator("&&", "||"):
                joint = self._take().plain
                self._skip_lines()
                found.items.append((joint, self._pipeline()))
            if self.here is None or self._is(*ends):
                break
            if not self._is_operator(";", "\n"):
                raise self.unexpected()
            self._at += 1
            self._skip_lines()
        if ends and self.here is None:
            raise Incomplete
        self._depth -= 1
        return found

    def _block(self, *ends: str) -> Sequence:
        """Return a sequence that must not be empty."""
        found = self.sequence(frozenset(ends))
        if not found.items:
            raise self.unexpected()
        return found

    def _pipeline(self) -> Pipeline:
        negated = False
        while self._is("!"):
            self._at += 1
            negated = not negated
        commands = [self._command()]
        while self._is_operator("|"):
            self._at += 1
            self._skip_lines()
            commands.append(self._command())
        return Pipeline(commands, negated)

    def _command(self) -> Command:
        word = self.here
        if word is None:
            raise Incomplete
        if word.operator and word.plain not in ("(", *_REDIRECTIONS, *_DUPLICATES):
            raise self.unexpected()
        text = word.plain
        if text in _UNSUPPORTED or text in _ENDS:
            raise self.unexpected()
        found: Command
        if text == "if":
            found = self._if()
        elif text in ("while", "until"):
            found = self._loop()
        elif text == "for":
            found = self._for()
        elif text in ("{", "("):
            found = self._group()
        else:
            return self._simple()
        while self._redirection(found.redirections):
            pass
        return found

    def _simple(self) -> Simple:
        found = Simple()
        while self.here is not None:
            if self._redirection(found.redirections):
                continue
            if self.here.operator:
                break
            found.words.append(self._take())
        if self._is_operator("("):
            raise self.unexpected()  # a function
        return found

    def _redirection(self, found: list[Redirection]) -> bool:
        if self.here is None or not self.here.operator:
            return False
        operator = self.here.plain
        if operator in _DUPLICATES:
            self._at += 1
            found.append(Redirection(*_DUPLICATES[operator]))
            return True
        if operator not in _REDIRECTIONS:
            return False
        self._at += 1
        target = self._take()
        if target.operator:
            self._at -= 1
            raise self.unexpected()
        stream, append = _REDIRECTIONS[operator]
        found.append(Redirection(stream, target, append))
        return True

    def _if(self) -> If:
        branches = []
        self._expect("if")
        while True:
            condition = self._block("then")
            self._expect("then")
            branches.append((condition, self._block("elif", "else", "fi")))
            if not self._is("elif"):
                break
            self._at += 1
        otherwise = None
        if self._is("else"):
            self._at += 1
            otherwise = self._block("fi")
        self._expect("fi")
        return If(branches, otherwise)

    def _loop(self) -> Loop:
        until = self._take().plain == "until"
        condition = self._block("do")
        return Loop(condition, self._body(), until)

    def _body(self) -> Sequence:
        self._expect("do")
        body = self._block("done")
        self._expect("done")
        return body

    def _for(self) -> For:
        self._expect("for")
        name = self._take().plain
        if not name.isidentifier():
            raise ScriptError("syntax error: bad for loop variable")
        self._skip_lines()
        if not self._is("in"):
            raise self.unexpected()
        self._at += 1
        words = []
        while self.here is not None and not self.here.operator:
            words.append(self._take())
        if not self._is_operator(";", "\n"):
            raise self.unexpected()
        self._at += 1
        self._skip_lines()
        return For(name, words, self._body())

    def _group(self) -> Group:
        opened = self._take().plain
        closing = "}" if opened == "{" else ")"
        body = self._block(closing)
        self._expect(closing)
        return Group(body, opened == "(")
