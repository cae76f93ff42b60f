"""Code with its colours, line by line, as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crow.terminal.palette import Look, Palette

LOOKS: dict[str, tuple[Look, ...]] = {
    "Comment": ("dim",),
    "Keyword": ("magenta",),
    "Keyword.Constant": ("cyan",),
    "Literal.String": ("green",),
    "Literal.Number": ("cyan",),
    "Name.Function": ("blue",),
    "Name.Class": ("blue",),
    "Name.Decorator": ("yellow",),
    "Name.Builtin": ("cyan",),
    "Name.Tag": ("magenta",),
    "Name.Attribute": ("yellow",),
    "Operator.Word": ("magenta",),
    "Generic.Deleted": ("red",),
    "Generic.Inserted": ("green",),
    "Generic.Heading": ("bold",),
    "Generic.Subheading": ("cyan",),
    "Generic.Prompt": ("dim",),
}
"""How the kinds of words look; a kind without a look has that of the kind that it belongs to."""


class Highlighter:
    """Paints the lines of one piece of code in order, and knows what is open between them."""

    def __init__(self, language: str, palette: Palette) -> None:
        self._palette = palette
        self._lexer = lexer_of(language) if language else None
        self._state: tuple[str, ...] = ("root",)

    def line(self, text: str, *, final: bool = True) -> str:
        """A line in colours; one that is not ``final`` comes again."""
        if self._lexer is None or len(text) > 2000:
            return text
        painted: list[str] = []
        state = list(self._state)
        try:
            for kind, word in self._words(f"{text}\n", state):
                painted.append(self._palette(word.rstrip("\n"), *look_of(kind)))
        except Exception:  # noqa: BLE001 - a lexer may stumble over anything; the code is there
            return text
        if final:
            self._state = tuple(state)
        return "".join(painted)

    def _words(self, line: str, state: list[str]) -> Iterator[tuple[str, str]]:
        """The kinds of the words and the words; ``state`` is what is open behind them, then."""
        from pygments.lexer import ExtendedRegexLexer, LexerContext, RegexLexer

        lexer: Any = self._lexer
        if not isinstance(lexer, RegexLexer):  # which has no state
            yield from ((str(kind), word) for _, kind, word in lexer.get_tokens_unprocessed(line))
            return
        walk: Any = ExtendedRegexLexer.get_tokens_unprocessed
        context = LexerContext(line, 0, state)
        yield from ((str(kind), word) for _, kind, word in walk(lexer, context=context))


def look_of(kind: str) -> tuple[Look, ...]:
    """The look of a kind of word, such as ``Token.Name.Function.Magic``."""
    name = kind.removeprefix("Token.")
    while name and name not in LOOKS:
        name = name.rpartition(".")[0]
    return LOOKS.get(name, ())


def lexer_of(language: str) -> Any:
    """The lexer of a language, by any of its names; None where there is none."""
    from pygments import lexers
    from pygments.util import ClassNotFound

    by_name: Any = vars(lexers)["get_lexer_by_name"]
    try:
        return by_name(language.lower().strip("{}."), ensurenl=False)
    except ClassNotFound:
        return None
