"""What each key does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from prompt_toolkit.filters import Condition, Filter, is_searching
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from crow.terminal.editor import Editor
from crow.terminal.outbox import Outbox
from crow.terminal.questions import Questions

ALT_ENTER = (Keys.Escape, Keys.ControlM)
"""What Shift-Enter is taken for."""
SEQUENCES: dict[str, Keys | tuple[Keys, ...]] = {
    "\x1b[13;2u": ALT_ENTER,
    "\x1b[27;2;13~": ALT_ENTER,
    "\x1b[13u": Keys.ControlM,
    "\x1b[27u": Keys.Escape,
    "\x1b[9u": Keys.Tab,
    "\x1b[127u": Keys.ControlH,
    "\x1b[9;2u": Keys.BackTab,
    "\x1b[27;2;9~": Keys.BackTab,
    "\x1b[13;3u": ALT_ENTER,
    "\x1b[27;3;13~": ALT_ENTER,
}
"""Keys as kitty's protocol and xterm tell of them."""
CONTROL = ("\x1b[{};5u", "\x1b[27;5;{}~")
"""And a letter with Ctrl."""
Key: TypeAlias = Keys | str
Binding: TypeAlias = tuple[tuple[Key, ...], Filter, Callable[[], object]]


class Keyed(Protocol):
    """What keys do something to."""

    editor: Editor
    outbox: Outbox
    questions: Questions
    working: Any

    def enter(self) -> None: ...
    def submit_later(self) -> None: ...
    def paste(self, data: str) -> None: ...
    def interrupt(self) -> None: ...
    def take_back(self) -> None: ...
    def next_mode(self) -> None: ...
    def leave(self) -> None: ...
    def control_c(self) -> None: ...
    def expand(self) -> None: ...
    def unfold(self) -> None: ...
    def redraw(self) -> None: ...
    def suspend(self) -> None: ...


def know_keys() -> None:
    """Teach prompt-toolkit the keys that terminals tell of in new ways."""
    ANSI_SEQUENCES.update(SEQUENCES)
    for letter in range(26):
        for form in CONTROL:
            ANSI_SEQUENCES[form.format(letter + ord("a"))] = ANSI_SEQUENCES[chr(letter + 1)]


def bindings(terminal: Keyed) -> KeyBindings:
    """The keys of the editor, of the run that is on and of questions."""
    know_keys()
    keys = KeyBindings()
    for each in (writing, asking, answering, anywhere):
        for names, condition, act in each(terminal):
            keys.add(*names, filter=condition)(doing(act))
    keys.add(Keys.Any, filter=is_choosing(terminal))(given(terminal.questions.press))
    keys.add(Keys.BracketedPaste)(given(terminal.paste))
    return keys


def doing(act: Callable[[], object]) -> Callable[[KeyPressEvent], None]:
    """A function of a key that does something."""

    def pressed(event: KeyPressEvent) -> None:
        del event
        act()

    return pressed


def given(take: Callable[[str], object]) -> Callable[[KeyPressEvent], None]:
    """A function of a key that is given what was typed or pasted."""

    def pressed(event: KeyPressEvent) -> None:
        take(event.data)

    return pressed


def is_choosing(terminal: Keyed) -> Filter:
    """True where a key is an answer."""
    asked = terminal.questions
    return Condition(lambda: asked.is_asking and not asked.is_typing)


def writing(terminal: Keyed) -> Iterable[Binding]:
    """The editor, and what becomes of what is written."""
    editor = terminal.editor
    free = ~Condition(lambda: terminal.questions.is_asking) & ~is_searching
    menu = Condition(lambda: editor.buffer.complete_state is not None)
    working = Condition(lambda: terminal.working is not None)
    empty = Condition(lambda: not editor.buffer.text)
    waits = Condition(lambda: bool(terminal.outbox))
    return (
        (("enter",), free, terminal.enter),
        (("escape", "enter"), free, editor.newline),
        (("c-j",), free, editor.newline),
        (("tab",), free & working & ~menu & ~empty, terminal.submit_later),
        (("tab",), free & (menu | ~working | empty), editor.complete),
        (("escape",), free & menu, editor.close_menu),
        (("escape",), free & ~menu, terminal.interrupt),
        (("escape", "up"), free, terminal.take_back),
        (("up",), free & ~menu & empty & waits, terminal.take_back),
        (("s-tab",), free & ~menu, terminal.next_mode),
        (("backspace",), free, editor.backspace),
        (("c-d",), free & empty, terminal.leave),
        (("c-g",), free, editor.open_elsewhere),
        (("c-x", "c-e"), free, editor.open_elsewhere),
    )


def asking(terminal: Keyed) -> Iterable[Binding]:
    """A question, beside the keys of its answers."""
    choosing, asked = is_choosing(terminal), terminal.questions
    return (
        (("enter",), choosing, asked.choose),
        (("up",), choosing, lambda: asked.move(-1)),
        (("down",), choosing, lambda: asked.move(1)),
        (("tab",), choosing, lambda: asked.press("w")),
        (("escape",), choosing, asked.refuse),
        (("c-d",), choosing, asked.refuse),
    )


def answering(terminal: Keyed) -> Iterable[Binding]:
    """Words as an answer."""
    asked = terminal.questions
    typing = Condition(lambda: asked.is_typing)
    return (
        (("enter",), typing, asked.say),
        (("escape",), typing, asked.unsay),
    )


def anywhere(terminal: Keyed) -> Iterable[Binding]:
    """What is the same wherever somebody is."""
    always = Condition(lambda: True)
    return (
        (("c-c",), always, terminal.control_c),
        ((Keys.SIGINT,), always, terminal.control_c),
        (("c-o",), always, terminal.expand),
        (("c-t",), always, terminal.unfold),
        (("c-l",), always, terminal.redraw),
        (("c-z",), always, terminal.suspend),
    )
