"""Finished Markdown as painted lines."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from crow.terminal.background import Theme
from crow.terminal.markdown import ITEM
from crow.terminal.palette import THEMES, Palette, plain, trimmed
from crow.terminal.wrapping import folded
from crow.text import clean

if TYPE_CHECKING:
    from rich.console import Console

NARROWEST, WIDEST = 16, 1_000_000
CODE = 4
"""Blanks that make a line one of code, where it is no item of a list."""
LOOKS = {
    "markdown.code": "cyan",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.link": "blue underline",
    "markdown.link_url": "dim",
    "markdown.item.bullet": "dim",
    "markdown.item.number": "dim",
    "markdown.list": "none",
    "markdown.block_quote": "dim",
    "markdown.hr": "dim",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}


def lines_of(markdown: str, width: int, palette: Palette) -> list[str]:
    """A block of Markdown as painted lines, none of them wider than ``width`` cells."""
    text = clean(markdown)
    indent = len(text) - len(text.lstrip(" "))
    if indent >= CODE and not ITEM.match(text):
        indent = 0
    width = max(NARROWEST, width - indent)
    if indent:
        text = "\n".join(
            line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in text.split("\n")
        )
    try:
        lines = drawn(text, width, palette)
    except Exception:  # noqa: BLE001 - what cannot be drawn is shown as it was written
        lines = []
    if not any(map(plain, lines)):
        lines = folded(text, width)
    return [" " * indent + line for line in lines]


def drawn(text: str, width: int, palette: Palette) -> list[str]:
    """A block as rich draws it."""
    console = console_of(width, palette.colours, palette.theme)
    with console.capture() as captured:
        console.print(document_of(text))
    return [trimmed(line) for line in captured.get().strip("\n").split("\n")]


def styled(text: str, palette: Palette) -> Any:
    """The words of a paragraph in their looks, a ``Text`` of rich's that is in no rows yet."""
    from markdown_it.token import Token
    from rich.text import Text

    document = document_class()("", hyperlinks=False, justify="default")
    inline = parser().parseInline(text)
    document.parsed = [Token("paragraph_open", "p", 1), *inline, Token("paragraph_close", "p", -1)]
    console = console_of(NARROWEST, palette.colours, palette.theme)
    pieces = console.render(document, console.options.update_width(WIDEST))
    found = Text.assemble(*((piece.text, piece.style or "") for piece in pieces))
    found.rstrip()
    return found


def rows_of(text: Any, width: int, palette: Palette) -> list[Any]:
    """Such words in rows, one at least."""
    width = max(NARROWEST, width)
    return list(text.wrap(console_of(width, palette.colours, palette.theme), width)) or [text]


def painted(row: Any, palette: Palette) -> str:
    """A row of them as a painted line."""
    console = console_of(NARROWEST, palette.colours, palette.theme)
    with console.capture() as captured:
        console.print(row, soft_wrap=True)
    return trimmed(captured.get().strip("\n"))


def leftover(text: str) -> str:
    """The words of a paragraph with the marks among them that mean nothing so far."""
    (inline,) = parser().parseInline(text)
    return "".join(each.content if each.type == "text" else "." for each in inline.children or ())


@lru_cache(4)
def console_of(width: int, colours: bool, theme: Theme) -> Console:
    """Who draws for a terminal of this width and background."""
    from rich.console import Console
    from rich.theme import Theme as Styles

    return Console(
        file=io.StringIO(),
        width=width,
        height=1000,
        force_terminal=True,
        color_system="256" if theme else "standard",
        no_color=not colours,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        theme=Styles({name: coloured(look, theme) for name, look in LOOKS.items()}),
        _environ={},
    )


def coloured(look: str, theme: Theme) -> str:
    """A look with the theme's colours, as rich writes them."""
    own: Mapping[str, int] = {str(name): colour for name, colour in THEMES[theme].items()}
    return " ".join(f"color({own[word]})" if word in own else word for word in look.split())


def document_of(text: str) -> Any:
    """A text as rich draws it, with headings at the left, tables in a frame and tags as text."""
    document = document_class()("", hyperlinks=False)
    document.parsed = parser().parse(text)
    return document


@lru_cache(1)
def parser() -> Any:
    """Reads Markdown without HTML: nothing that was said, such as ``list<int>``, is left out."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


@lru_cache(1)
def document_class() -> Any:
    """What draws Markdown; made here, because rich takes its time to import."""
    from rich import box
    from rich.console import ConsoleOptions, RenderResult
    from rich.markdown import CodeBlock, Heading, Markdown, TableElement
    from rich.table import Table
    from rich.text import Text

    class LeftHeading(Heading):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            self.text.justify = "left"
            yield self.text

    class FramedTable(TableElement):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for table in super().__rich_console__(console, options):
                if isinstance(table, Table):
                    table.box = box.ROUNDED
                yield table

    class PlainCode(CodeBlock):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Text(f"  {self.text}".rstrip().replace("\n", "\n  "), overflow="fold")

    class Document(Markdown):
        elements: ClassVar = {
            **Markdown.elements,
            "heading_open": LeftHeading,
            "table_open": FramedTable,
            "code_block": PlainCode,
            "fence": PlainCode,
        }

    return Document
