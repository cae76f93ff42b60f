"""Confinement of commands beside the rules, and what that makes of a decision.

A question that is asked only because nothing said otherwise need not be asked of a command that
stays inside of a sandbox; what leaves it is asked about, unless a rule names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crow.dataclasses import frozen
from crow.extensions.permissions.decision import Decision
from crow.extensions.permissions.rules.command import CommandPattern

if TYPE_CHECKING:
    from crow.extensions.permissions.shell.script import Node
    from crow.keys import Sandbox

ESCAPE = "dangerouslyDisableSandbox"
INSIDE = "it stays in the sandbox"
READING = "the sandbox lets it write nothing"
REFUSED = "it was refused something where nothing can be written"
OUTSIDE = "it wants to run outside of the sandbox"
PROTECTED = "the sandbox would not let it, so it runs outside once it is allowed"


@frozen
class Confinement:
    """The sandbox that commands run in. The fields are those of a `crow.keys.Sandbox`.

    ``escapes`` says that a call may ask to run outside.
    """

    unasked: bool = True
    over_ask: bool = False
    escapes: bool = True
    excluded: tuple[CommandPattern, ...] = ()
    reads: bool = False
    has_refused: Callable[[str], bool] = bool

    @classmethod
    def of(cls, sandbox: Sandbox | None) -> Confinement | None:
        """What a sandbox says of itself; None where nothing holds. May block."""
        if sandbox is None or not sandbox.name:
            return None
        excluded = tuple(_patterns(sandbox.excluded))
        return cls(
            sandbox.unasked,
            sandbox.over_ask,
            sandbox.escapes,
            excluded,
            sandbox.reads,
            sandbox.has_refused,
        )

    def settled(
        self,
        decision: Decision,
        args: Mapping[str, Any],
        *,
        named: bool,
        is_strict: bool,
        plans: bool = False,
    ) -> Decision:
        """What becomes of a decision about a command, and the ring that it may run in.

        ``named`` says that a rule allows it by name. Where it ``is_strict``, the sandbox answers
        no question, but where a model ``plans`` it answers those about what writes nothing in it.
        """
        if decision.decision == "deny":
            return decision
        if self.escapes and args.get(ESCAPE) is True:
            return _outside(decision, args, named=named)
        if self.is_excluded(args):
            return replace(decision, ring="outside")
        if decision.ring == "outside":
            return replace(decision, reason=f"{decision.reason}; {PROTECTED}")
        command = str(args.get("command"))
        if decision.ring == "reading" and self.has_refused(command):
            decision = Decision("ask", REFUSED, default=True)
        is_open = decision.decision == "ask" and decision.default and not decision.secret
        if is_open and self.unasked and not is_strict:
            return Decision("allow", INSIDE, ring="workspace")
        if is_open and (plans or not is_strict) and self._tries(command, is_any=plans):
            return Decision("allow", READING, ring="reading")
        return replace(decision, ring=decision.ring or "workspace")

    def _tries(self, command: str, *, is_any: bool) -> bool:
        """Whether a command is tried where it can write nothing: any one, or one that may do so."""
        if not self.reads or self.has_refused(command):
            return False
        if is_any:
            return True
        from crow.extensions.permissions.programs.readers import is_reader
        from crow.extensions.permissions.shell.commands import script_of

        words = list(_plain_commands(script_of(command)))
        return bool(words) and all(each is not None and is_reader(each) for each in words)

    def is_excluded(self, args: Mapping[str, Any]) -> bool:
        """Whether every part of a command is one that runs outside by itself."""
        text = args.get("command")
        if not self.excluded or not isinstance(text, str):
            return False
        from crow.extensions.permissions.shell.commands import script_of

        words = list(_plain_commands(script_of(text)))
        return bool(words) and all(
            each is not None and any(pattern.matches(each) for pattern in self.excluded)
            for each in words
        )

    def skips(self, decision: Decision, *, is_strict: bool) -> bool:
        """Whether a rule that asks about every command is passed over."""
        return self.over_ask and self.unasked and decision.ring != "outside" and not is_strict


def _outside(decision: Decision, args: Mapping[str, Any], *, named: bool) -> Decision:
    if decision.decision == "ask" and not decision.default:
        return replace(decision, reason=f"{OUTSIDE}, and {decision.reason}", ring="outside")
    if decision.decision == "allow" and named:
        return replace(decision, ring="outside")
    why = " ".join(str(args.get("description") or "").split())
    reason = f"{OUTSIDE}: {why}" if why else OUTSIDE
    return Decision("ask", reason, default=True, ring="outside")


def _patterns(texts: Iterator[str] | Any) -> Iterator[CommandPattern]:
    for text in texts:
        try:
            yield CommandPattern.of(text)
        except ValueError:
            continue  # whoever reads the settings says so


def _plain_commands(node: Node) -> Iterator[list[str] | None]:
    """The words of each command of a script; None for what is more than a chain of plain ones."""
    from crow.extensions.permissions.shell.script import Chain, Sequence, Simple

    match node:
        case Simple(words, (), ()) if words:
            texts = [word.text for word in words if word.text is not None]
            yield texts if len(texts) == len(words) else None
        case Chain():
            yield from _plain_commands(node.left)
            yield from _plain_commands(node.right)
        case Sequence():
            for each in node.items:
                yield from _plain_commands(each)
        case _:
            yield None
