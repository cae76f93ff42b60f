"""Completion while typing and by Tab: slash commands with their help, and files of the project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from crow.terminal.conversation import Offered
from crow.text import one_line

MENTION = re.compile(r"(?:^|(?<=\s))@(\S*)$")
MOST = 50


class PromptCompleter(Completer):
    """Completes ``/command`` at the beginning, ``@file`` and what else can be named so anywhere."""

    def __init__(
        self, commands: Callable[[], Sequence[Offered]], files: Callable[[], Sequence[str]]
    ) -> None:
        self._commands = commands
        self._files = files

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """What could be meant by what stands before the cursor."""
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before and "\n" not in before:
            return self._named(before[1:])
        if before.startswith("/") and "\n" not in before:
            return self._arguments(before[1:])
        if (mention := MENTION.search(before)) is not None:
            return self._mentioned(mention[1])
        return ()

    def _named(self, typed: str) -> Iterable[Completion]:
        known = {each.name: each for each in self._commands()}
        for name in ranked(typed, known):
            each = known[name]
            shown = f"/{name} {each.hint}".rstrip()
            yield Completion(f"/{name}", -len(typed) - 1, shown, each.description)

    def _arguments(self, typed: str) -> Iterable[Completion]:
        """What a command says that can stand behind its name."""
        name, _, rest = typed.partition(" ")
        command = next((each for each in self._commands() if each.name == name), None)
        if command is None or command.complete is None:
            return
        try:
            texts = [one_line(text) for text in command.complete(rest)]
        except Exception:  # noqa: BLE001 - whoever cannot complete completes nothing
            return
        for text in ranked(rest, texts)[:MOST]:
            yield Completion(text, -len(rest), text)

    def _mentioned(self, typed: str) -> Iterable[Completion]:
        for path in ranked(typed, self._files())[:MOST]:
            yield Completion(f"@{path}", -len(typed) - 1, path)


def ranked(typed: str, names: Iterable[str]) -> list[str]:
    """The names that fit, the best first: what begins so, has it in its last part, anywhere."""
    if not typed:
        return sorted(names)
    found = [(rank, len(name), name) for name in names if (rank := fit(typed, name)) is not None]
    return [name for _, _, name in sorted(found)]


def fit(typed: str, name: str) -> int | None:
    """How well a name fits, 0 being best; None where it does not: the letters stand in order."""
    wanted, given = typed.casefold(), name.casefold()
    last = given.rstrip("/").rpartition("/")[2]
    if given.startswith(wanted):
        return 0
    if last.startswith(wanted):
        return 1
    if wanted in last:
        return 2
    if wanted in given:
        return 3
    letters = iter(given)
    return 4 if all(letter in letters for letter in wanted) else None
