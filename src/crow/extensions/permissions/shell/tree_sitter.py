"""The first opinion: a shell script read by tree-sitter-bash, node kind by node kind.

What is not on the list of node kinds becomes `Other` or `Unknown`, which nothing lets through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from crow.dataclasses import frozen
from crow.extensions.permissions.shell.heredoc_chain import JOINED, continued
from crow.extensions.permissions.shell.quoting import (
    ARITHMETIC,
    ansi_quoted,
    double_quoted,
    heredoc_parts,
    unquoted,
)
from crow.extensions.permissions.shell.script import (
    Assignment,
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
    chained,
    declared,
    extended,
    in_sequence,
)
from crow.extensions.permissions.shell.unparsed import gap_fault, is_lost_dash

if TYPE_CHECKING:
    from tree_sitter import Node as Leaf
    from tree_sitter import Parser

SEPARATORS = frozenset({";", "&", "\n", "&&", "||", "|", "|&", "comment"})
KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while", "until", "{", "}"}
    | {"(", ")", "$(", "`", "<(", ">(", "!", "heredoc_start", "heredoc_end"}
)
WORDS = frozenset(
    {"word", "number", "string", "raw_string", "ansi_c_string", "concatenation", "expansion"}
    | {"simple_expansion", "command_substitution", "process_substitution", "brace_expression"}
    | {"arithmetic_expansion", "translated_string", "extglob_pattern", "regex", "test_operator"}
    | {"variable_name"}
)
PLAIN_PATTERN = re.compile(r"[\w.*?:,/@^+\[\]-]+\$?")
REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})


ASTRAL = re.compile("[\U00010000-\U0010ffff]")
STAND_IN = "%%%%"
"""What the parser sees in the place of a character beyond U+FFFF: as many bytes, of a word as well.

Its scanner looks such characters up behind the end of a table, which can end the process.
"""


@frozen
class Parsed:
    """A script as a parser read it; ``fault`` says why it cannot be relied on."""

    script: Node
    fault: str | None = None


def new_parser() -> Parser:
    """A parser; it is for one thread at a time."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def read(parser: Parser, text: str) -> Parsed:
    """Read a script. Never raises; a script that cannot be read whole has a ``fault``."""
    source = text.encode("utf-8", "surrogatepass")
    shown = ASTRAL.sub(STAND_IN, text).encode("utf-8", "surrogatepass")
    root = parser.parse(shown).root_node
    fault = "the command does not parse" if root.has_error else gap_fault(root, source)
    try:
        script = _Reader(source).sequence(root)
    except RecursionError:
        return Parsed(Other("too deep"), "the command is nested too deeply")
    return Parsed(script, fault)


def is_statement(node: Leaf) -> bool:
    """Whether a node is more than punctuation."""
    return node.type not in SEPARATORS and node.type not in KEYWORDS


class _Reader:
    """Turns the nodes of one source into a script."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.kinds: dict[str, Callable[[Leaf], Node]] = {
            "command": self.command,
            "redirected_statement": self.redirected,
            "list": self.chain,
            "pipeline": self.chain,
            "subshell": lambda node: Group("subshell", (self.sequence(node),)),
            "compound_statement": self.braces,
            "if_statement": lambda node: Group("if", tuple(self.branches(node))),
            "while_statement": self.loop,
            "for_statement": self.each,
            "case_statement": self.case,
            "negated_command": self.sequence,
            "test_command": lambda node: Simple(tuple(self.test_words(node))),
            "variable_assignment": lambda node: Simple((), (self.assignment(node),)),
            "variable_assignments": self.command,
            "declaration_command": self.declaration,
            "unset_command": self.declaration,
        }

    def text(self, node: Leaf) -> str:
        """The source of a node."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def node(self, node: Leaf) -> Node:
        """Any statement."""
        if node.is_error or node.is_missing:
            return self.other(node)
        return self.kinds.get(node.type, self.other)(node)

    def sequence(self, node: Leaf) -> Node:
        """All statements directly below a node, one after another."""
        return in_sequence(self.statements(node.children))

    def statements(self, nodes: list[Leaf]) -> list[Node]:
        """Statements among nodes, without the punctuation between them."""
        return [self.node(node) for node in nodes if is_statement(node)]

    def other(self, node: Leaf) -> Other:
        """Something that is not on the list, with what can be found in it."""
        parts: list[Node] = []
        words: list[Word] = []
        for child in node.named_children:
            if child.type in WORDS:
                words.append(self.word(child))
            elif is_statement(child):
                parts.append(self.node(child))
        return Other(node.type, tuple(parts), tuple(words))

    def chain(self, node: Leaf) -> Node:
        """A list or a pipeline, from the left."""
        made: Node | None = None
        op = ""
        for child in node.children:
            if child.type in SEPARATORS:
                op = op if child.type == "comment" else child.type
                continue
            part = self.node(child)
            made = part if made is None else chained(op, made, part)
        return made or self.other(node)

    def redirected(self, node: Leaf) -> Node:
        """A statement with redirects."""
        body: Node = Simple()
        redirects: list[Redirect] = []
        end = node.start_byte
        for child in node.children:
            if child.type not in REDIRECTS:
                body = self.node(child)
            else:
                made = self.redirect(child)
                if made is None:
                    return Other("redirect", (body, self.other(child)))
                redirects.extend(made)
                lost = [Word.plain("-")] if is_lost_dash(self.source, end, child.start_byte) else []
                body = extended(body, lost + self.stray(child))
            end = child.end_byte
        last = node.children[-1]
        body = attached(body, redirects)
        return continued(body, last, self.node) if last.type == "heredoc_redirect" else body

    def stray(self, node: Leaf) -> list[Word]:
        """Words behind a redirect's target, which are the command's."""
        if node.type != "file_redirect":
            return []
        words = [child for child in node.children if child.type in WORDS]
        return [self.word(child) for child in words[1:]]

    def redirect(self, node: Leaf) -> list[Redirect] | None:
        """The redirects that one redirect node holds; None where it holds more than that."""
        if node.type == "heredoc_redirect":
            return self.heredoc(node)
        fd = op = ""
        targets: list[Word] = []
        for child in node.children:
            if child.type == "file_descriptor":
                fd = self.text(child)
            elif child.type in WORDS:
                targets.append(self.word(child))
            elif child.is_named:
                return None
            else:
                op += self.text(child)
        if op in {">&-", "<&-"} and not targets:
            op, targets = op[:2], [Word.plain("-")]
        return [Redirect(op, targets[0], fd)] if targets else None

    def heredoc(self, node: Leaf) -> list[Redirect] | None:
        """A here-document; None where an odd thing stands behind its mark."""
        redirects: list[Redirect] = []
        op = mark = raw = ""
        joined = False
        for child in node.children:
            joined = joined or child.type in JOINED
            match child.type:
                case "<<" | "<<-":
                    op = child.type
                case "heredoc_start":
                    mark = self.text(child)
                case "heredoc_body":
                    raw = self.text(child)
                case "heredoc_end":
                    pass
                case "file_redirect" if not self.stray(child):
                    redirects.extend(self.redirect(child) or [ODD_REDIRECT])
                case _:
                    if not joined:
                        return None
        return [Redirect(op, Word.of(heredoc_parts(op, mark, raw))), *redirects]

    def command(self, node: Leaf) -> Node:
        """A simple command."""
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        end = -1
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self.assignment(child))
            elif child.type in REDIRECTS:
                redirects.extend(self.redirect(child) or [ODD_REDIRECT])
                words.extend(self.stray(child))
            elif child.start_byte == end and words:
                words[-1] = Word.of([*words[-1].parts, Unknown("glued words")])
            else:
                words.append(self.word(child))
            end = child.end_byte
        return attached(Simple(tuple(words), tuple(assignments)), redirects)

    def declaration(self, node: Leaf) -> Node:
        """``export``, ``declare``, ``unset`` and their like."""
        words: list[Word] = []
        for child in node.children:
            if child.type == "variable_assignment":
                words.append(declared(self.assignment(child)))
            elif child.is_named:
                words.append(self.word(child))
            else:
                words.append(Word.plain(self.text(child)))
        return Simple(tuple(words))

    def assignment(self, node: Leaf) -> Assignment:
        """``name=value``."""
        name = node.child_by_field_name("name") or node
        value = node.child_by_field_name("value")
        odd = name.type != "variable_name" or any(c.type == "+=" for c in node.children)
        word = self.word(value) if value else Word.of([Text("")])
        if value and value.type not in WORDS:
            odd, word = True, Word.of([Unknown("array", (self.other(value),))])
        return Assignment(self.text(name), word, odd)

    def braces(self, node: Leaf) -> Node:
        """``{ ...; }``; arithmetic looks the same to the parser."""
        if node.children and node.children[0].type != "{":
            return self.other(node)
        return Group("braces", (self.sequence(node),))

    def branches(self, node: Leaf) -> Iterator[Node]:
        """The parts of an ``if`` between its keywords."""
        section: list[Leaf] = []
        for child in node.children:
            if child.type in {"elif_clause", "else_clause", "then"} and section:
                yield in_sequence(self.statements(section))
                section = []
            if child.type in {"elif_clause", "else_clause"}:
                yield from self.branches(child)
            elif is_statement(child):
                section.append(child)
        if section:
            yield in_sequence(self.statements(section))

    def loop(self, node: Leaf) -> Node:
        """``while`` and ``until``."""
        body = [child for child in node.children if child.type == "do_group"]
        head = [child for child in node.children if child.type != "do_group"]
        if len(body) != 1:
            return self.other(node)
        return Group("while", (in_sequence(self.statements(head)), self.sequence(body[0])))

    def each(self, node: Leaf) -> Node:
        """``for name in words``."""
        kinds = [child.type for child in node.children]
        if "select" in kinds or "in" not in kinds or kinds[-1] != "do_group":
            return self.other(node)
        words = [self.word(child) for child in node.children if child.type in WORDS]
        body = self.sequence(node.children[-1])
        return Group("for", (body,), (), tuple(words[1:]), words[0].shape)

    def case(self, node: Leaf) -> Node:
        """``case word in pattern) ...;; esac``."""
        items = [child for child in node.children if child.type == "case_item"]
        words = [self.word(child) for child in node.children if child.type in WORDS]
        if len(words) != 1:
            return self.other(node)
        parts: list[Node] = []
        for item in items:
            end = next((i for i, c in enumerate(item.children) if c.type == ")"), 0)
            head = [c for c in item.children[:end] if c.type not in {"(", "|"}]
            if not end or not all(child.type in WORDS for child in head):
                return self.other(node)
            words += [self.word(child) for child in head]
            body = [c for c in item.children[end:] if c.type not in {";;", ";&", ";;&"}]
            parts.append(in_sequence(self.statements(body)))
        return Group("case", tuple(parts), (), tuple(words))

    def test_words(self, node: Leaf) -> Iterator[Word]:
        """The words and operators of a test, in order."""
        for child in node.children:
            if child.type in WORDS:
                yield self.word(child)
            elif child.children:
                yield from self.test_words(child)
            else:
                yield Word.plain(self.text(child))

    def word(self, node: Leaf) -> Word:
        """A word."""
        return Word.of(list(self.parts(node)))

    def parts(self, node: Leaf) -> Iterator[Part]:
        """The parts of a word."""
        match node.type:
            case "word" | "number" | "variable_name" | "test_operator":
                yield from unquoted(self.text(node))
            case "raw_string":
                yield Text(self.text(node)[1:-1], quoted=True)
            case "ansi_c_string":
                yield from ansi_quoted(self.text(node)[2:-1])
            case "string":
                yield from self.string(node)
            case "concatenation" | "command_name" | "brace_expression":
                yield from self.joined(node)
            case "$" | "{" | "}" | "..":
                yield Text(self.text(node))
            case "extglob_pattern" | "regex":
                plain = PLAIN_PATTERN.fullmatch(self.text(node))
                yield from unquoted(self.text(node)) if plain else [Unknown("pattern")]
            case _:
                yield self.expansion(node, quoted=False)

    def joined(self, node: Leaf) -> Iterator[Part]:
        """The parts of what must stand without a gap."""
        end = node.start_byte
        for child in node.children:
            if child.start_byte != end:
                yield Unknown("gap in a word")
            end = child.end_byte
            yield from self.parts(child)

    def string(self, node: Leaf) -> Iterator[Part]:
        """The parts of a double-quoted string; text is taken from the source, not the nodes."""
        position = node.start_byte + 1
        for child in node.named_children:
            if child.type == "string_content":
                continue
            yield from self.quoted_text(position, child.start_byte)
            yield self.expansion(child, quoted=True)
            position = child.end_byte
        yield from self.quoted_text(position, node.end_byte - 1)

    def quoted_text(self, start: int, end: int) -> Iterator[Part]:
        """Text of the source as it stands in double quotes."""
        yield from double_quoted(self.source[start:end].decode("utf-8", "replace"))

    def expansion(self, node: Leaf, *, quoted: bool) -> Part:
        """What stands for other text."""
        match node.type:
            case "simple_expansion":
                return Variable(self.text(node)[1:], quoted)
            case "expansion" if [c.type for c in node.children] == ["${", "variable_name", "}"]:
                return Variable(self.text(node)[2:-1], quoted)
            case "command_substitution" if self.is_plain_substitution(node):
                return Substitution(self.sequence(node), "command", quoted)
            case "process_substitution":
                return Substitution(self.sequence(node), "process", quoted)
            case "arithmetic_expansion" if ARITHMETIC.fullmatch(self.text(node)):
                return Variable("(arithmetic)", quoted)
            case _:
                return Unknown(node.type, (self.other(node),), quoted)

    def is_plain_substitution(self, node: Leaf) -> bool:
        """Whether it is ``$(...)`` or backquotes without escapes, and not a file to be read."""
        text = self.text(node)
        if not text.startswith("$("):
            return "\\" not in text
        return not any(child.type in REDIRECTS for child in node.children)


ODD_REDIRECT = Redirect("?", Word((Unknown("redirect"),)))
