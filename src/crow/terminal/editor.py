"""The prompt's editor: many lines, long pastes folded to a word, a history that lasts."""

from __future__ import annotations

import re
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from crow.core.support.frozen import frozen

FOLDED_LINES, FOLDED_LETTERS = 10, 1500
"""From how many lines or letters on a paste stands as one word."""
TOKEN = re.compile(r"\[paste #(\d+) \+\d+ lines?\]")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@frozen
class Draft:
    """A draft: the text, where the cursor stood, the words for what was pasted."""

    text: str = ""
    cursor: int = 0
    pastes: tuple[tuple[str, str], ...] = ()

    def behind(self, text: str) -> Draft:
        """The same with a text in front of it."""
        whole = "\n".join(filter(None, (text, self.text)))
        return Draft(whole, len(whole), self.pastes)


class Editor:
    """The draft. ``text`` is all of it, with what was pasted in the place of the words for it."""

    def __init__(self, history: Path | None, completer: Completer | None = None) -> None:
        self._pastes: dict[str, str] = {}
        self.buffer = Buffer(
            name="draft",
            multiline=True,
            history=history_at(history),
            completer=completer,
            complete_while_typing=completer is not None,
            tempfile_suffix=".md",
        )

    @property
    def text(self) -> str:
        """The draft, whole."""
        return self._unfolded(self.buffer.text)

    def _unfolded(self, text: str) -> str:
        return TOKEN.sub(lambda token: self._pastes.get(token[0], token[0]), text)

    def take(self) -> str:
        """The draft, which is empty and in the history from now on."""
        text = self.text
        if text.strip():
            self.buffer.text = text
            self.buffer.append_to_history()
        self.buffer.reset()
        self._pastes.clear()
        return text

    def clear(self) -> bool:
        """Put the draft into the history, where Up finds it; False where there is none."""
        return bool(self.take())

    def put_back(self, text: str) -> None:
        """Put a text in front of the draft, to be edited again."""
        draft = self.buffer.text
        self.buffer.text = f"{text}\n{draft}" if draft else text
        self.buffer.cursor_position = len(self.buffer.text)

    def put_aside(self) -> Draft:
        """What is being written, which is not to be seen any more."""
        draft = Draft(self.buffer.text, self.buffer.cursor_position, (*self._pastes.items(),))
        self.bring(Draft())
        return draft

    def bring(self, draft: Draft) -> None:
        """Go on with what was put aside."""
        self._pastes = dict(draft.pastes)
        self.buffer.reset(Document(draft.text, draft.cursor))

    def paste(self, data: str) -> None:
        """Insert what was pasted: whole, or as one word where it is long."""
        data = CONTROLS.sub("", data.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4))
        lines = data.count("\n")
        if lines < FOLDED_LINES and len(data) < FOLDED_LETTERS:
            self.buffer.insert_text(data)
            return
        token = f"[paste #{len(self._pastes) + 1} +{lines + 1} lines]"
        self._pastes[token] = data
        self.buffer.insert_text(token)

    def backspace(self) -> None:
        """Take back the letter before the cursor, or the paste that stands there as a word."""
        before = self.buffer.document.text_before_cursor
        token = next((each for each in self._pastes if before.endswith(each)), " ")
        self.buffer.delete_before_cursor(len(token))
        if self.buffer.complete_while_typing() and self.buffer.text:
            self.buffer.start_completion()

    def complete(self) -> None:
        """Take the next thing that could be meant, or show what there is."""
        if self.buffer.complete_state is not None:
            self.buffer.complete_next()
        else:
            self.buffer.start_completion(select_first=True)

    def close_menu(self) -> None:
        """Take none of what could be meant."""
        self.buffer.cancel_completion()

    def choose_command(self) -> None:
        """Let the beginning of a command's name stand for the first command that begins so."""
        state, text = self.buffer.complete_state, self.buffer.text
        if state is None or state.complete_index is not None or not state.completions:
            return
        first = state.completions[0].text
        if text.startswith("/") and first.startswith(text):
            self.buffer.text = first

    def open_elsewhere(self) -> None:
        """Write on in the editor that ``VISUAL`` or ``EDITOR`` names."""
        self.buffer.text = self.text
        self.buffer.open_in_editor()

    def newline(self) -> None:
        """Begin another line."""
        self.buffer.newline(copy_margin=False)

    def continues(self) -> bool:
        """True where a backslash before the cursor wants another line, which it has then."""
        if not self.buffer.document.text_before_cursor.endswith("\\"):
            return False
        self.buffer.delete_before_cursor()
        self.newline()
        return True


def history_at(path: Path | None) -> History:
    """The history in a file that only its user can read."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
