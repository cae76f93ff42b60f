"""An explanation of a call, in one line made from its parse: the answer to "?" in a question.

Nothing is decided by it. Where the parse does not tell, it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from crow.extensions.permissions.permissions import Permissions
from crow.extensions.permissions.rules.domain import host_of
from crow.extensions.permissions.shell.commands import script_of
from crow.extensions.permissions.shell.script import (
    HOLE,
    Chain,
    Group,
    Node,
    Other,
    Redirect,
    Simple,
    Unknown,
    Word,
    substitutions,
    words_of,
)
from crow.extensions.permissions.shell.script import Sequence as Several
from crow.extensions.permissions.shell.wrapper import program, unwrap

TABLE = Path(__file__).parent / "programs" / "deeds.txt"
MOST = 6
NAMED = 3
UNKNOWN = "something that only the shell will know"
AROUND = {"if": "perhaps", "case": "perhaps", "while": "again and again", "for": "for each of {}"}
NAMES_FOLLOW = ("-C", "-c", "--git-dir", "--work-tree")
"""Options of git before its command whose value is a word of its own."""


FOUND = ("{}", "+", ";")
"""What stands for the files that `find` finds."""


class Deed(NamedTuple):
    """A line of the table: for a command that begins with ``head`` and has one of ``options``."""

    head: tuple[str, ...]
    options: frozenset[str]
    text: str


def explain(tool: str, args: Mapping[str, Any], *, cwd: str) -> str:
    """What a call would do, in a line; empty where its arguments say it all."""
    match tool:
        case "Bash":
            return _of_script(str(args.get("command", "")), cwd)
        case "WebFetch":
            host = host_of(str(args.get("url", "")))
            return f"asks {host} over the network, which learns that you did" if host else ""
        case _ if tool.startswith("mcp__"):
            _, server, name = (*tool.split("__", 2), "", "")[:3]
            return f"asks the server {server} to do {name}; what that does, only the server knows"
        case _:
            return ""


def _of_script(command: str, cwd: str) -> str:
    alone = Permissions(second=_no_opinion)  # that would be another process
    reads = alone.in_session(mode="default", cwd=cwd, roots=())
    told = list(dict.fromkeys(_clauses(script_of(command), reads, cwd)))
    more = f"; and {len(told) - MOST} things more" if len(told) > MOST else ""
    return "; then ".join(told[:MOST]) + more


def _no_opinion(command: str) -> None:
    """What the second parser says, which nobody asks."""
    del command


def _clauses(node: Node, reads: Permissions, cwd: str) -> Iterator[str]:
    """A clause for each command, those that are in the words of another before it."""
    yield from _inside(words_of(node), reads, cwd)
    match node:
        case Simple():
            yield from _simple(node, reads, cwd)
        case Chain():
            yield from _clauses(node.left, reads, cwd)
            yield from _clauses(node.right, reads, cwd)
        case Several():
            for each in node.items:
                yield from _clauses(each, reads, cwd)
        case Group():
            around = AROUND.get(node.kind, "").format(_several(list(map(_shown, node.words))))
            inner = [text for part in node.parts for text in _clauses(part, reads, cwd)]
            yield from (f"{text}, {around}" if around else text for text in inner)
            yield from map(_redirected, filter(_writes, node.redirects))
        case Other():
            yield f"does {UNKNOWN}"


def _inside(words: tuple[Word, ...], reads: Permissions, cwd: str) -> Iterator[str]:
    """Clauses for the commands that are in words."""
    for inner in substitutions(words):
        yield from _clauses(inner, reads, cwd)
    if any(map(_is_hidden, words)):
        yield f"does {UNKNOWN}"


def _is_hidden(word: Word) -> bool:
    """True for text that may have commands in it which the parse does not show."""
    return any(
        isinstance(part, Unknown) and part.kind == "here-document" and not part.inner
        for part in word.parts
    )


def _simple(node: Simple, reads: Permissions, cwd: str) -> Iterator[str]:
    written = list(map(_redirected, filter(_writes, node.redirects)))
    if not node.words:
        yield from written
        return
    said = _only_reads(node, reads, cwd) or _deed(node.words)
    named = ", ".join(one.name for one in node.assignments)
    yield " and ".join([f"{said}, with {named} set" if named else said, *written])


def _only_reads(node: Simple, reads: Permissions, cwd: str) -> str:
    """Said of a command that would run unasked where there are no rules."""
    words = [word.text for word in node.words]
    if None in words or node.assignments or _deed_of(words) is not None:
        return ""
    from shlex import join

    text = join([word for word in words if word is not None])
    if reads.judge("Bash", {"command": text}, cwd=cwd).decision != "allow":
        return ""
    return f"only reads, with {words[0]}"


def _deed(words: Sequence[Word]) -> str:
    shown = list(map(_shown, words))
    found = _deed_of(shown)
    inside = [one.words for one in unwrap(words) if not one.vague]
    if inside and (found is None or found.head == ("sudo",)):
        told = ", and ".join(map(_deed, inside))
        return f"{found.text}: {told}" if found is not None else told
    if found is None:
        name = program(words[0])
        return f"runs {name}, which may do whatever you may" if name else f"runs {UNKNOWN}"
    operands = _operands(shown)[len(found.head) - 1 :]
    return found.text.format(_several(operands))


def _deed_of(words: Sequence[str | None]) -> Deed | None:
    """The line of the table that fits a command first."""
    name = Path(words[0] or "").name
    plain = [name, *_operands(words)]
    options = {option for word in words[1:] if word for option in _options(word)}
    for deed in deeds().get(name, ()):
        if tuple(plain[: len(deed.head)]) != deed.head:
            continue
        if not deed.options or deed.options & options:
            return deed
    return None


def _operands(words: Sequence[str | None]) -> list[str]:
    """The words of a command that are no options, nor values of git's own."""
    found: list[str] = []
    before = ""
    for word in words[1:]:
        is_value = words[0] == "git" and not found and before in NAMES_FOLLOW
        if word is not None and word[:1] != "-" and word not in FOUND and not is_value:
            found.append(word)
        before = word or ""
    return found


def _options(word: str) -> Iterator[str]:
    """The options that a word could be, those of a cluster apart."""
    if word.startswith("--"):
        yield word.partition("=")[0]
    elif word.startswith("-"):
        yield word
        yield from (f"-{letter}" for letter in word[1:])


@cache
def deeds() -> Mapping[str, list[Deed]]:
    """The table, by program."""
    table: dict[str, list[Deed]] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            command, _, text = line.partition(" | ")
            words = command.split()
            options = words.pop().split("|") if words[-1].startswith("-") else []
            table.setdefault(words[0], []).append(Deed(tuple(words), frozenset(options), text))
    return table


def _writes(redirect: Redirect) -> bool:
    target = redirect.target.text
    return ">" in redirect.op and target != "/dev/null" and not (target or "x").isdigit()


def _redirected(redirect: Redirect) -> str:
    where = _shown(redirect.target)
    return f"appends to {where}" if redirect.op == ">>" else f"writes {where}"


def _shown(word: Word) -> str:
    return word.spelled.replace(HOLE, "…")


def _several(names: list[str]) -> str:
    if not names:
        return "what it is given"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
