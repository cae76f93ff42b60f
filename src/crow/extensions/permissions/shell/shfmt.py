"""The second opinion: the same script read by mvdan/sh, asked as ``shfmt --to-json``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crow.extensions.permissions.shell.quoting import (
    ARITHMETIC,
    ansi_quoted,
    double_quoted,
    heredoc_parts,
    unquoted,
)
from crow.extensions.permissions.shell.script import (
    Assignment,
    Chain,
    Group,
    Node,
    Other,
    Part,
    Redirect,
    Simple,
    Substitution,
    Text,
    Unknown,
    Variable,
    Word,
    attached,
    declared,
    in_sequence,
)

Json = dict[str, Any]
SECONDS = 5
PLAIN_EXPANSION = frozenset({"Type", "Pos", "End", "Dollar", "Rbrace", "Short", "Param"})


def find_shfmt() -> str | None:
    """Where the program is: beside this Python, else on PATH."""
    beside = Path(sys.executable).parent / "shfmt"
    return str(beside) if beside.is_file() else shutil.which("shfmt")


class SecondOpinion:
    """Asks shfmt, and remembers its answers. None where it has none to give."""

    def __init__(self, program: str | None = None, *, remembered: int = 512) -> None:
        self.program = program if program is not None else find_shfmt()
        self.remembered = remembered
        self._answers: dict[str, Node | None] = {}

    def __call__(self, text: str) -> Node | None:
        """What shfmt makes of a script."""
        if text in self._answers:
            return self._answers[text]
        answer = self._ask(text)
        while len(self._answers) >= self.remembered:
            self._answers.pop(next(iter(self._answers)), None)
        self._answers[text] = answer
        return answer

    def _ask(self, text: str) -> Node | None:
        if not self.program:
            return None
        try:
            done = subprocess.run(
                [self.program, "--language-dialect=bash", "--to-json"],
                input=text.encode("utf-8", "surrogatepass"),
                capture_output=True,
                check=False,
                timeout=SECONDS,
                cwd=os.sep,
                env={},
            )
            if done.returncode == 0:
                return script_of(json.loads(done.stdout), text)
        except (OSError, subprocess.SubprocessError, ValueError, LookupError, RecursionError):
            return None
        return None


def script_of(tree: Json, text: str) -> Node:
    """The script that a syntax tree of shfmt's describes. Raises KeyError for a strange one."""
    return _Reader(text.encode("utf-8", "surrogatepass")).statements(tree)


class _Reader:
    """Turns shfmt's tree into a script."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.kinds: dict[str, Callable[[Json], Node]] = {
            "CallExpr": self.call,
            "BinaryCmd": self.chain,
            "Subshell": lambda tree: Group("subshell", (self.statements(tree),)),
            "Block": lambda tree: Group("braces", (self.statements(tree),)),
            "IfClause": lambda tree: Group("if", tuple(self.branches(tree))),
            "WhileClause": self.loop,
            "ForClause": self.each,
            "CaseClause": self.case,
            "TestClause": self.test,
            "TimeClause": self.timed,
            "DeclClause": self.declaration,
        }

    def statements(self, tree: Json, key: str = "Stmts") -> Node:
        """Several statements."""
        return in_sequence([self.statement(one) for one in tree.get(key, ())])

    def statement(self, tree: Json) -> Node:
        """One statement with its redirects."""
        command = tree.get("Cmd")
        node = self.node(command) if command else Simple()
        return attached(node, [self.redirect(one) for one in tree.get("Redirs", ())])

    def node(self, tree: Json) -> Node:
        """Any command."""
        make = self.kinds.get(tree["Type"])
        return make(tree) if make else Other(tree["Type"])

    def call(self, tree: Json) -> Node:
        """A simple command."""
        words = tuple(self.word(one) for one in tree.get("Args", ()))
        assignments = tuple(self.assignment(one) for one in tree.get("Assigns", ()))
        return Simple(words, assignments)

    def assignment(self, tree: Json) -> Assignment:
        """``name=value``."""
        odd = any(tree.get(key) for key in ("Append", "Naked", "Index", "Array"))
        value = self.word(tree["Value"]) if tree.get("Value") else Word.of([Text("")])
        return Assignment(tree["Name"]["Value"], value, odd)

    def declaration(self, tree: Json) -> Node:
        """``export``, ``declare`` and their like."""
        words = [Word.plain(tree["Variant"]["Value"])]
        for one in tree.get("Args", ()):
            if not one.get("Naked"):
                words.append(declared(self.assignment(one)))
            elif one.get("Value"):
                words.append(self.word(one["Value"]))
            else:
                words.append(Word.plain(one["Name"]["Value"]))
        return Simple(tuple(words))

    def chain(self, tree: Json) -> Node:
        """``&&``, ``||`` and pipes."""
        return Chain(tree["Op"], self.statement(tree["X"]), self.statement(tree["Y"]))

    def branches(self, tree: Json) -> Iterator[Node]:
        """The parts of an ``if``."""
        if tree.get("Cond"):
            yield self.statements(tree, "Cond")
        yield self.statements(tree, "Then")
        if tree.get("Else"):
            yield from self.branches(tree["Else"])

    def loop(self, tree: Json) -> Node:
        """``while`` and ``until``."""
        return Group("while", (self.statements(tree, "Cond"), self.statements(tree, "Do")))

    def each(self, tree: Json) -> Node:
        """``for name in words``."""
        loop = tree["Loop"]
        if loop["Type"] != "WordIter" or tree.get("Select") or not loop.get("InPos"):
            return Other("for")
        words = tuple(self.word(one) for one in loop.get("Items", ()))
        body = self.statements(tree, "Do")
        return Group("for", (body,), (), words, loop["Name"]["Value"])

    def case(self, tree: Json) -> Node:
        """``case word in pattern) ...;; esac``."""
        words = [self.word(tree["Word"])]
        parts: list[Node] = []
        for item in tree.get("Items", ()):
            words += [self.word(pattern) for pattern in item["Patterns"]]
            parts.append(self.statements(item))
        return Group("case", tuple(parts), (), tuple(words))

    def timed(self, tree: Json) -> Node:
        """``time``, as a word before the first command of what is timed."""
        words = [Word.plain("time")] + ([Word.plain("-p")] if tree.get("PosixFormat") else [])
        if not tree.get("Stmt"):
            return Simple(tuple(words))
        return prefixed(self.statement(tree["Stmt"]), words)

    def test(self, tree: Json) -> Node:
        """``[[ ... ]]``."""
        inner = tuple(self.test_words(tree["X"]))
        return Simple((Word.plain("[["), *inner, Word.plain("]]")))

    def test_words(self, tree: Json) -> Iterator[Word]:
        """The words and operators of a test, in order."""
        match tree.get("Type", "Word"):
            case "BinaryTest":
                yield from self.test_words(tree["X"])
                yield Word.plain(tree["Op"])
                yield from self.test_words(tree["Y"])
            case "UnaryTest":
                yield Word.plain(tree["Op"])
                yield from self.test_words(tree["X"])
            case "ParenTest":
                yield Word.plain("(")
                yield from self.test_words(tree["X"])
                yield Word.plain(")")
            case _:
                yield self.word(tree)

    def redirect(self, tree: Json) -> Redirect:
        """A redirect; of a here-document, its body."""
        op, fd = tree["Op"], tree.get("N", {}).get("Value", "")
        word = tree["Word"]
        if op not in {"<<", "<<-"}:
            return Redirect(op, self.word(word), fd)
        body = tree.get("Hdoc", {}).get("Parts", ())
        if any(part["Type"] != "Lit" for part in body):
            return Redirect(op, Word((Unknown("here-document"),)), fd)
        raw = "".join(part["Value"] for part in body)
        mark = self.slice(word["Pos"], word["End"])
        return Redirect(op, Word.of(heredoc_parts(op, mark, raw)), fd)

    def slice(self, start: Json, end: Json) -> str:
        """A piece of the source."""
        return self.source[start["Offset"] : end["Offset"]].decode("utf-8", "replace")

    def word(self, tree: Json) -> Word:
        """A word."""
        return Word.of([part for one in tree.get("Parts", ()) for part in self.parts(one)])

    def parts(self, tree: Json) -> Iterator[Part]:
        """The parts of a word outside of double quotes."""
        match tree["Type"]:
            case "Lit":
                yield from unquoted(tree["Value"])
            case "SglQuoted" if tree.get("Dollar"):
                yield from ansi_quoted(tree.get("Value", ""))
            case "SglQuoted":
                yield Text(tree.get("Value", ""), quoted=True)
            case "DblQuoted" if not tree.get("Dollar"):
                yield Text("", quoted=True)
                for one in tree.get("Parts", ()):
                    yield from self.inner(one)
            case _:
                yield self.expansion(tree, quoted=False)

    def inner(self, tree: Json) -> Iterator[Part]:
        """The parts of a double-quoted string."""
        if tree["Type"] == "Lit":
            yield from double_quoted(tree["Value"])
        else:
            yield self.expansion(tree, quoted=True)

    def expansion(self, tree: Json, *, quoted: bool) -> Part:
        """What stands for other text."""
        match tree["Type"]:
            case "ParamExp" if PLAIN_EXPANSION.issuperset(k for k, v in tree.items() if v):
                return Variable(tree["Param"]["Value"], quoted)
            case "CmdSubst" if not tree.get("TempFile") and not tree.get("ReplyVar"):
                return Substitution(self.statements(tree), "command", quoted)
            case "ProcSubst":
                return Substitution(self.statements(tree), "process", quoted)
            case "ArithmExp" if ARITHMETIC.fullmatch(self.slice(tree["Pos"], tree["End"])):
                return Variable("(arithmetic)", quoted)
            case kind:
                return Unknown(kind, (), quoted)


def prefixed(node: Node, words: list[Word]) -> Node:
    """A node whose first simple command has these words before its own."""
    match node:
        case Simple(assignments=()):
            return Simple((*words, *node.words), (), node.redirects)
        case Chain():
            return Chain(node.op, prefixed(node.left, words), node.right)
        case _:
            return Other("time", (node,))
