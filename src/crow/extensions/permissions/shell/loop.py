"""A ``for`` loop, unrolled: its body once for each of its words, the variable replaced."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from crow.extensions.permissions.shell.builtin import evaluates
from crow.extensions.permissions.shell.script import (
    Chain,
    Group,
    Node,
    Other,
    Part,
    Sequence,
    Simple,
    Substitution,
    Variable,
    Word,
    walk,
    words_of,
)
from crow.extensions.permissions.shell.wrapper import unwrap

PLAIN = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")
MOST = 8
SETTERS = frozenset({"read", "wait"})


def unrolled(loop: Group, is_plain: Callable[[Word], bool]) -> list[Node]:
    """The bodies; the body alone, its variable unknown, where that cannot be done for certain.

    ``is_plain`` says whether a word stays one word where it stands without quotes.
    """
    [body] = loop.parts
    if not 0 < len(loop.words) <= MOST or any(word.text is None for word in loop.words):
        return [body]
    bodies: list[Node] = []
    for word in loop.words:
        made = _Replaced(loop.name, word, splits=not is_plain(word)).node(body)
        if not _keeps(made, loop.name):
            return [body]
        bodies.append(made)
    return bodies


def _keeps(body: Node, name: str) -> bool:
    """Whether nothing in a body can give a variable another value."""
    for node in walk(body):
        if isinstance(node, Other) or not all(word.known for word in words_of(node)):
            return False
        if isinstance(node, Group) and node.name == name:
            return False
        if isinstance(node, Simple) and not _is_harmless(node, name):
            return False
    return True


def _is_harmless(command: Simple, name: str) -> bool:
    if not command.words or any(one.name == name for one in command.assignments):
        return False
    runs = [command.words, *(inner.words for inner in unwrap(command.words) if inner.words)]
    return all(_sets_nothing(words, name) for words in runs)


def _sets_nothing(words: tuple[Word, ...], name: str) -> bool:
    program = words[0].text
    if program in SETTERS and len(words) > 1:
        return program == "read" and all(word.text not in {None, name} for word in words)
    return program is not None and not evaluates(words)


class _Replaced:
    """Puts a word for a variable wherever that stands."""

    def __init__(self, name: str, value: Word, *, splits: bool) -> None:
        self.name, self.value, self.splits = name, value, splits

    def node(self, node: Node) -> Node:
        match node:
            case Simple():
                return Simple(
                    tuple(map(self.word, node.words)),
                    tuple(replace(one, value=self.word(one.value)) for one in node.assignments),
                    tuple(replace(one, target=self.word(one.target)) for one in node.redirects),
                )
            case Chain():
                return Chain(node.op, self.node(node.left), self.node(node.right))
            case Sequence():
                return Sequence(tuple(map(self.node, node.items)))
            case Group():
                return Group(
                    node.kind,
                    tuple(map(self.node, node.parts)),
                    tuple(replace(one, target=self.word(one.target)) for one in node.redirects),
                    tuple(map(self.word, node.words)),
                    node.name,
                )
            case Other():
                return node

    def word(self, word: Word) -> Word:
        return Word.of([new for part in word.parts for new in self.parts(part)])

    def parts(self, part: Part) -> list[Part]:
        match part:
            case Variable(name=self.name) if part.quoted or not self.splits:
                return list(self.value.parts)
            case Substitution():
                return [replace(part, script=self.node(part.script))]
            case _:
                return [part]
