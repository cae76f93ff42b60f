"""Where the command writes: text that cannot steer the terminal, colours only where they show."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Generator
from typing import IO, Literal, TextIO

from crow.text import clean, columns, one_line, shorten

PIECES = r"\n|[^\S\n]+|\S+"
FENCE = "```"
ERASE = "\x1b[K"


class Wrap:
    """Breaks a stream of text between words.

    The beginning of a word is shown at once, and taken back to the next line where the word turns
    out to be too long for this one. What stands between code fences is left as it is: a terminal
    folds that by itself, and lets it be copied whole.
    """

    def __init__(self) -> None:
        self._column = 0
        self._word = ""
        self._in_code = False

    def feed(self, text: str, width: int) -> str:
        """What to write, so that the text stands in ``width`` columns."""
        return "".join(self._take(piece, width) for piece in re.findall(PIECES, text))

    def _take(self, piece: str, width: int) -> str:
        if piece == "\n":
            self._end_word()
            self._column = 0
            return piece
        if piece.isspace():
            self._end_word()
            piece = piece if self._in_code else piece[: max(0, width - 1 - self._column)]
            self._column += columns(piece)
            return piece
        return self._grow(piece, width)

    def _grow(self, piece: str, width: int) -> str:
        """Write more of a word, in the next line with all of it where it is too long for this."""
        shown, self._word = self._word, self._word + piece
        start = self._column - columns(shown)
        self._column += columns(piece)
        if self._column < width or not start or self._in_code:
            return piece
        self._column = columns(self._word)
        back = "\b" * columns(shown) + ERASE if shown else ""
        return f"{back}\n{self._word}"

    def _end_word(self) -> None:
        if self._word.startswith(FENCE) and self._column == columns(self._word):
            self._in_code = not self._in_code
        self._word = ""


Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}


class Output:
    """Standard output and standard error.

    ``gone`` is True once the reader of standard output has left, or it cannot be written to (then
    ``loss`` is True as well); writing does nothing then, and ``when_gone`` was called.
    ``complaint`` is the last thing that `error` said.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.gone = False
        self.loss = False
        self.complaint = ""
        self.when_gone: Callable[[], object] | None = None
        self.at_start = True
        self._wrap = Wrap()
        for stream in (self.out, self.err):
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="replace")  # type: ignore[attr-defined]

    @property
    def is_terminal(self) -> bool:
        """True where a person watches standard output."""
        return self.out.isatty()

    @property
    def width(self) -> int:
        """Cells in a line; at least 20."""
        from shutil import get_terminal_size

        return max(20, get_terminal_size((100, 24)).columns)

    def styled(self, text: str, *styles: Style, stream: IO[str] | None = None) -> str:
        """Text in a style where that shows and is wanted."""
        if not text or not styles or not has_colours(stream or self.out):
            return text
        codes = ";".join(str(CODES[style]) for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    @contextlib.contextmanager
    def through(self, out: TextIO, err: TextIO) -> Generator[None]:
        """Write to other streams for a while."""
        kept = self.out, self.err
        self.out, self.err = out, err
        try:
            yield
        finally:
            self.out, self.err = kept

    def write(self, text: str, *styles: Style) -> None:
        """Write a piece of text as it comes."""
        text = clean(text)
        if text:
            self._put(self.styled(text, *styles))
            self.at_start = text.endswith("\n")

    def stream(self, text: str, *styles: Style) -> None:
        """Write a piece of text as it comes, where a person watches in lines broken at words."""
        if not self.is_terminal:
            self.write(text, *styles)
        elif shown := self._wrap.feed(clean(text), self.width):
            self._put(self.styled(shown, *styles))
            self.at_start = shown.endswith("\n")

    def line(self, text: str = "", *styles: Style) -> None:
        """Write a line of its own."""
        self.raw(self.styled(clean(text), *styles))

    def raw(self, text: str) -> None:
        """Write a line of its own that was cleaned and styled before."""
        self.start_line()
        self._put(f"{text}\n")

    def verbatim(self, line: str) -> None:
        """Write a line for a program."""
        self._put(f"{line}\n")

    def obey(self, sequence: str) -> None:
        """Send a sequence to the terminal, where there is one."""
        if self.is_terminal:
            self._put(sequence)

    def start_line(self) -> None:
        """End the line that is being written, if any."""
        self._wrap = Wrap()
        if not self.at_start:
            self._put("\n")
            self.at_start = True

    def fit(self, text: str, indent: int = 0) -> str:
        """A line that fits where a person watches; as it is where a program reads."""
        return shorten(text, self.width - indent) if self.is_terminal else text

    def error(self, text: str) -> None:
        """Say on standard error, in one line, what went wrong or what somebody should know."""
        self.start_line()
        self.complaint = text
        with contextlib.suppress(OSError, ValueError):
            self.err.write(f"{self.styled('crow:', 'red', stream=self.err)} {one_line(text)}\n")
            self.err.flush()

    def note(self, text: str) -> None:
        """Say something beside the matter on standard error."""
        self.start_line()
        with contextlib.suppress(OSError, ValueError):
            self.err.write(f"{self.styled(one_line(text), 'dim', stream=self.err)}\n")
            self.err.flush()

    def flush(self) -> None:
        """Write what others have printed, and still lies here."""
        self._attempt(self.out.flush)

    def _put(self, text: str) -> None:
        self._attempt(lambda: print(text, end="", file=self.out, flush=True))

    def _attempt(self, write: Callable[[], object]) -> None:
        if self.gone:
            return
        try:
            write()
        except (BrokenPipeError, ValueError):
            self.leave()
        except OSError as error:
            self.leave()
            self.loss = True
            is_closed = error.errno == errno.EBADF
            self.error(
                f"standard output {'is closed' if is_closed else f'fails: {error.strerror}'}"
            )

    def leave(self) -> None:
        """Stop writing to a reader that has left, and keep the interpreter from trying again."""
        self.gone = True
        self.at_start = True
        if self.when_gone is not None:
            self.when_gone()
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())


def has_colours(stream: IO[str]) -> bool:
    """True where colours show and nobody has turned them off."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
"""How ``/dev/null`` stands for each: empty to read from, an output that cannot be written to."""


def hold() -> None:
    """Keep the numbers of closed streams from the files that are opened next.

    The database of the sessions would have one otherwise, and get what child processes print.
    """
    for number, mode in enumerate(MODES):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)
    sys.stdin = sys.stdin or _stream(0, "r")
    sys.stdout = sys.stdout or _stream(1, "w")
    sys.stderr = sys.stderr or _stream(2, "w")


def _stream(number: int, mode: Literal["r", "w"]) -> TextIO:
    return os.fdopen(number, mode, encoding="utf-8", closefd=False)
