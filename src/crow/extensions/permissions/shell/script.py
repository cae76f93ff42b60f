"""A shell script as plain data: commands, words and redirects, after quote removal.

Both parsers (`parser` and `opinion`) make it, so that what they read can be compared with ``==``.
What cannot change which program runs (negation, background) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from crow.dataclasses import frozen

HOLE = "\x01"  # stands for text that only the shell will know; no command can contain it
GAP = "\x00"  # stands between the words of a joined command


@frozen
class Text:
    """Literal text; ``quoted`` text is never expanded."""

    value: str
    quoted: bool = False


@frozen
class Variable:
    """``$name`` or ``${name}`` and nothing more."""

    name: str
    quoted: bool = False


@frozen
class Substitution:
    """``$(...)``, backquotes (``command``) or ``<(...)``, ``>(...)`` (``process``)."""

    script: Node
    kind: str
    quoted: bool = False


@frozen
class Unknown:
    """An expansion that is not understood well enough to be let through; ``inner`` is in it."""

    kind: str
    inner: tuple[Node, ...] = ()
    quoted: bool = False


Part: TypeAlias = Text | Variable | Substitution | Unknown


class _Spellings:
    """The spellings of a word, which every rule asks for: found out once."""

    __slots__ = ("bare", "braced", "shape", "text")

    bare: str
    """The unquoted text alone."""
    braced: bool
    """Whether ``{a,b}`` or ``{1..9}`` makes several words of it."""
    shape: str
    """The word with a `HOLE` for each part that only the shell will know."""
    text: str | None
    """The word as the program gets it, tilde and globs as written; None where unknown."""


@frozen
class Word(_Spellings):
    """One word of a command."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        first = self.parts[0] if len(self.parts) == 1 else None
        if isinstance(first, Text):  # as most are
            whole, is_text = first.value, True
            bare = "" if first.quoted else whole
        else:
            texts = [part for part in self.parts if isinstance(part, Text)]
            whole, is_text = "".join([part.value for part in texts]), len(texts) == len(self.parts)
            bare = "".join([part.value for part in texts if not part.quoted])
        braced = "{" in bare and is_braced(bare)
        is_known = is_text and not braced
        put = object.__setattr__
        put(self, "bare", bare)
        put(self, "braced", braced)
        put(self, "text", whole if is_known else None)
        put(self, "shape", whole if is_known else HOLE if braced else _shape_of(self.parts))

    @classmethod
    def of(cls, parts: list[Part]) -> Word:
        """A word in its normal form: equal neighbours joined, empty quotes gone."""
        joined: list[Part] = []
        for part in parts:
            if isinstance(part, Text):
                if not part.value and len(parts) > 1:
                    continue
                last = joined[-1] if joined else None
                if isinstance(last, Text) and last.quoted == part.quoted:
                    joined[-1] = Text(last.value + part.value, part.quoted)
                    continue
            joined.append(part)
        return cls(tuple(joined) or (Text("", quoted=True),))

    @classmethod
    def plain(cls, text: str) -> Word:
        """A word that is written without any quotes."""
        return cls((Text(text),))

    @property
    def spelled(self) -> str:
        """The word as it is written, without quotes; a `HOLE` for all but plain variables."""
        if self.braced:
            return HOLE
        return "".join(
            part.value
            if isinstance(part, Text)
            else f"${part.name}"
            if isinstance(part, Variable)
            else HOLE
            for part in self.parts
        )

    @property
    def globbed(self) -> bool:
        """Whether the shell may replace it by names of files."""
        bare = self.bare
        return "*" in bare or "?" in bare or ("[" in bare and "]" in bare)

    @property
    def splits(self) -> bool:
        """Whether it may become several words, or none."""
        return self.braced or any(not p.quoted for p in self.parts if not isinstance(p, Text))

    @property
    def piped(self) -> bool:
        """Whether it is the output of commands, as a file: ``<(...)``."""
        part = self.parts[0]
        return len(self.parts) == 1 and isinstance(part, Substitution) and part.kind == "process"

    @property
    def known(self) -> bool:
        """Whether nothing in it is beyond plain variables and commands that are read too."""
        return Unknown not in map(type, self.parts)


def is_braced(bare: str) -> bool:
    """Whether unquoted text has braces that make several words of one."""
    inner = bare[bare.find("{") : bare.rfind("}") + 1]
    return "," in inner or ".." in inner


def _shape_of(parts: tuple[Part, ...]) -> str:
    return "".join([part.value if isinstance(part, Text) else HOLE for part in parts])


@frozen
class Assignment:
    """``name=value``; ``odd`` where it has a subscript, an array or ``+=``."""

    name: str
    value: Word
    odd: bool = False


@frozen
class Redirect:
    """``fd op target``; of a here-document the target is its body."""

    op: str
    target: Word
    fd: str = ""


@frozen
class Simple:
    """A simple command."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()

    @property
    def name(self) -> str | None:
        """The program or built-in, where it is known."""
        return self.words[0].text if self.words else None


@frozen
class Chain:
    """``left && right``, ``left || right``, ``left | right``, ``left |& right``."""

    op: str
    left: Node
    right: Node


@frozen
class Sequence:
    """Commands one after another."""

    items: tuple[Node, ...]


@frozen
class Group:
    """A compound command: ``subshell``, ``braces``, ``if``, ``while``, ``for`` or ``case``.

    ``words`` are those that a ``for`` goes through, ``name`` its variable; of a ``case`` they are
    what it compares, and its patterns.
    """

    kind: str
    parts: tuple[Node, ...]
    redirects: tuple[Redirect, ...] = ()
    words: tuple[Word, ...] = ()
    name: str = ""


@frozen
class Other:
    """Something that is never let through by itself (``kind`` says what) and what is in it."""

    kind: str
    parts: tuple[Node, ...] = ()
    words: tuple[Word, ...] = ()


Node: TypeAlias = Simple | Chain | Sequence | Group | Other


def in_sequence(nodes: list[Node]) -> Node:
    """Several commands as one node; one command stays as it is."""
    return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))


def chained(op: str, left: Node, right: Node) -> Node:
    """Two commands as one. A pipe takes the last command of a list, never the list.

    The first parser gives it the whole list where a redirect stands before it.
    """
    if op in {"|", "|&"} and isinstance(left, Chain) and left.op in {"&&", "||"}:
        return Chain(left.op, left.left, chained(op, left.right, right))
    return Chain(op, left, right)


def attached(node: Node, redirects: list[Redirect]) -> Node:
    """A node with redirects, which belong to the last command of a chain."""
    if not redirects:
        return node
    match node:
        case Simple():
            ordered = sorted([*node.redirects, *redirects], key=repr)
            return Simple(node.words, node.assignments, tuple(ordered))
        case Chain():
            return Chain(node.op, node.left, attached(node.right, redirects))
        case Group():
            ordered = sorted([*node.redirects, *redirects], key=repr)
            return Group(node.kind, node.parts, tuple(ordered), node.words, node.name)
        case Sequence() | Other():
            return Other("redirect", (node, Simple(redirects=tuple(redirects))))


def extended(node: Node, words: list[Word]) -> Node:
    """A command with more words at its end."""
    if not words:
        return node
    match node:
        case Simple():
            return Simple((*node.words, *words), node.assignments, node.redirects)
        case Chain():
            return Chain(node.op, node.left, extended(node.right, words))
        case _:
            return Other("redirect", (node, Simple(tuple(words))))


def declared(one: Assignment) -> Word:
    """An assignment as the word of a declaration."""
    odd: list[Part] = [Unknown("subscript")] if one.odd else []
    return Word.of([Text(one.name + "="), *one.value.parts, *odd])


def substitutions(words: tuple[Word, ...]) -> Iterator[Node]:
    """The scripts inside of words."""
    for word in words:
        for part in word.parts:
            if isinstance(part, Substitution):
                yield part.script
            elif isinstance(part, Unknown):
                yield from part.inner


def words_of(node: Node) -> tuple[Word, ...]:
    """All words that stand directly in a node, values and redirect targets included."""
    match node:
        case Simple():
            values = tuple(assignment.value for assignment in node.assignments)
            return node.words + values + tuple(r.target for r in node.redirects)
        case Group():
            return node.words + tuple(r.target for r in node.redirects)
        case Other():
            return node.words
        case _:
            return ()


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly inside a node, without those inside its words."""
    match node:
        case Chain():
            return (node.left, node.right)
        case Sequence():
            return node.items
        case Group() | Other():
            return node.parts
        case Simple():
            return ()


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it in source order, those inside words included."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        below = [*children(one), *substitutions(words_of(one))]
        waiting.extend(reversed(below))
