"""The command's output: text that cannot steer the terminal, colours only where they show."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Generator
from typing import IO, Literal, TextIO

from crow.text import clean, one_line, shorten

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

    def beside(self) -> Output:
        """Standard error in the place of standard output: for what is no part of the result."""
        return Output(self.err, self.err)

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

    def note(self, text: str, before: str = "") -> None:
        """Say something beside the matter on standard error."""
        self.start_line()
        with contextlib.suppress(OSError, ValueError):
            line = f"{before}{one_line(text)}"
            self.err.write(f"{self.styled(line, 'dim', stream=self.err)}\n")
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
