"""The output to the terminal: a frame at a time, in one piece."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from crow.text import one_line

BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
"""Between them a terminal that knows of it shows nothing."""
KEYS_ON, KEYS_OFF = "\x1b[>1u\x1b[>4;2m", "\x1b[<u\x1b[>4;0m"
"""Shift-Enter as a key of its own, in kitty's way and in xterm's."""
TITLE_ON, TITLE_OFF = "\x1b[22;2t", "\x1b[23;2t"
PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
NOTIFIERS: Mapping[str, str] = {
    "iterm.app": "\x1b]9;{}\x07",
    "wezterm": "\x1b]9;{}\x07",
    "warpterminal": "\x1b]9;{}\x07",
    "ghostty": "\x1b]777;notify;Crow;{}\x07",
    "xterm-ghostty": "\x1b]777;notify;Crow;{}\x07",
    "rxvt-unicode-256color": "\x1b]777;notify;Crow;{}\x07",
    "foot": "\x1b]777;notify;Crow;{}\x07",
    "xterm-kitty": "\x1b]99;;{}\x1b\\",
}
"""How terminals are told to notify somebody, by the names that they give themselves."""
BELL = "\x07"


class TerminalOutput(Vt100_Output):
    """Writes each frame at once. No cursor position is ever asked for.

    ``when_gone`` is called once the terminal can be written to no more: whoever draws goes on as
    if it could, for prompt_toolkit would wait for ever for the end of what it draws.
    """

    def __init__(self, stream: TextIO, when_gone: Callable[[], object]) -> None:
        super().__init__(stream, lambda: size_of(stream), os.environ.get("TERM"), enable_cpr=False)
        self._when_gone = when_gone
        self._is_gone = False
        self._holds = False
        self._is_open = False

    def open(self) -> None:
        """Have the terminal tell of pastes and of Shift-Enter."""
        self._is_open = True
        self.write_raw(PASTE_ON + KEYS_ON + TITLE_ON)
        self.flush()

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._is_open:
            self._is_open = False
            self.write_raw(KEYS_OFF + PASTE_OFF + TITLE_OFF)
            self.flush()

    def hold(self) -> None:
        """Begin a frame."""
        self.write_raw(BEGIN)
        self._holds = True

    def release(self) -> None:
        """Write the frame."""
        self._holds = False
        self.write_raw(END)
        self.flush()

    def flush(self) -> None:
        """Write what has gathered, between frames."""
        if self._holds:
            return
        try:
            super().flush()
        except BlockingIOError:
            raise
        except OSError:
            if not self._is_gone:
                self._is_gone = True
                self._when_gone()

    def enable_bracketed_paste(self) -> None:
        """It is on as long as the terminal is open."""

    def disable_bracketed_paste(self) -> None:
        """It is on as long as the terminal is open."""

    def reset_cursor_key_mode(self) -> None:
        """Nobody changes it here."""

    def title(self, text: str) -> None:
        """Name the window."""
        self.write_raw(f"\x1b]2;{one_line(text)}\x07")
        self.flush()

    def notify(self, text: str) -> None:
        """Call somebody who is not looking."""
        self.write_raw(notification(one_line(text), os.environ))
        self.flush()


def notification(text: str, env: Mapping[str, str]) -> str:
    """What has the user called: by a notification where the terminal is known to have such."""
    if env.get("TMUX"):
        return BELL
    names = env.get("TERM_PROGRAM", "").lower(), env.get("TERM", "").lower()
    form = next((NOTIFIERS[name] for name in names if name in NOTIFIERS), None)
    return form.format(text) if form else BELL


def size_of(stream: TextIO) -> Size:
    """Rows and columns of the terminal."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns, rows = 80, 24
    return Size(rows=rows or 24, columns=columns or 80)
