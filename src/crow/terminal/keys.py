"""The key bindings: what each key does, and which keys the settings have chosen for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from prompt_toolkit.filters import (
    Condition,
    Filter,
    is_searching,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyBindingsBase
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES, Keys

from crow.terminal.editor import Editor
from crow.terminal.outbox import Outbox
from crow.terminal.picker import add_picking
from crow.terminal.progress_line import ProgressLine
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
Pressed: TypeAlias = tuple[Key, ...]
Binding: TypeAlias = tuple[str, Filter, Callable[[], object], tuple[Pressed, ...]]
"""What a key does by its name in the settings, when, how, and the keys that do it by default."""
MODIFIERS = {"ctrl": "c", "shift": "s"}


class Worked(Protocol):
    """The session that keys go to."""

    working: ProgressLine | None
    outbox: Outbox


class Keyed(Protocol):
    """The window that keys act on."""

    editor: Editor

    @property
    def front(self) -> Worked: ...
    @property
    def tabs(self) -> Sequence[object]: ...
    @property
    def questions(self) -> Questions: ...

    def enter(self) -> None: ...
    def submit_later(self) -> None: ...
    def paste(self, data: str) -> None: ...
    def paste_picture(self) -> None: ...
    def escape(self) -> None: ...
    def take_back(self) -> None: ...
    def next_mode(self) -> None: ...
    def leave(self) -> None: ...
    def control_c(self) -> None: ...
    def expand(self) -> None: ...
    def unfold(self) -> None: ...
    def redraw(self) -> None: ...
    def suspend(self) -> None: ...
    def show_number(self, number: int) -> None: ...
    def show_waiting(self) -> None: ...


def know_keys() -> None:
    """Teach prompt-toolkit the keys that terminals tell of in new ways."""
    ANSI_SEQUENCES.update(SEQUENCES)
    for letter in range(26):
        for form in CONTROL:
            ANSI_SEQUENCES[form.format(letter + ord("a"))] = ANSI_SEQUENCES[chr(letter + 1)]


def bindings(terminal: Keyed, chosen: Mapping[str, Sequence[Pressed]] | None = None) -> KeyBindings:
    """The keys of the editor, of the run that is on and of questions.

    ``chosen`` are keys in the place of the default ones, by what they do.
    """
    know_keys()
    keys = KeyBindings()
    for each in (writing, asking, answering, anywhere):
        for name, condition, act, usual in each(terminal):
            for names in (chosen or {}).get(name, usual):
                is_vis = bool(name) and names == ("escape",)  # which leaves its insert mode first
                when = condition & ~vi_insert_mode if is_vis else condition
                keys.add(*names, filter=when)(doing(act))

    def answer(key: str) -> None:
        terminal.questions.press(key)

    keys.add(Keys.Any, filter=is_choosing(terminal))(given(answer))
    add_picking(keys, lambda: terminal.questions)
    keys.add(Keys.BracketedPaste)(given(terminal.paste))
    return keys


def added_keys(
    questions: Questions, acts: Mapping[Pressed, Callable[[], object]]
) -> KeyBindingsBase:
    """Keys that extensions have chosen."""
    more = KeyBindings()
    free = ~Condition(lambda: questions.is_asking) & ~is_searching
    for names, act in acts.items():
        more.add(*names, filter=free)(doing(act))
    return more


def key_of(text: str) -> Pressed:
    """A key as settings write it: ``alt-enter``, ``ctrl-x ctrl-e``. Raises ``ValueError``."""
    found = tuple(key for word in text.lower().split() for key in _pressed(word))
    if not found or (len(found) == 1 and len(found[0]) == 1):
        raise ValueError(f"{text!r} is no key that can be chosen; ctrl-g, alt-enter or f5 is one")
    return found


def _pressed(word: str) -> Pressed:
    *modifiers, name = word.rsplit("-", word.count("-")) if word != "-" else [word]
    before: Pressed = ("escape",) if "alt" in modifiers else ()
    short = [MODIFIERS.get(each, "?") for each in modifiers if each != "alt"]
    key = "-".join([*short, name])
    if key not in ALL_KEYS and key not in KEY_ALIASES and len(key) != 1:
        raise ValueError(f"{word!r} is no key; ctrl-g, alt-enter or f5 is one")
    return (*before, key)


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


def to(terminal: Keyed, act: Callable[[Questions], object]) -> Callable[[], object]:
    """A function of a key that does something to what is asked in front."""
    return lambda: act(terminal.questions)


def is_choosing(terminal: Keyed) -> Filter:
    """True where a key is an answer."""
    return Condition(lambda: terminal.questions.is_asking and not terminal.questions.is_typing)


def writing(terminal: Keyed) -> Iterable[Binding]:
    """The editor, and what becomes of what is written."""
    editor = terminal.editor
    free = ~Condition(lambda: terminal.questions.is_asking) & ~is_searching
    menu = Condition(lambda: editor.buffer.complete_state is not None)
    working = Condition(lambda: terminal.front.working is not None)
    empty = Condition(lambda: not editor.buffer.text)
    waits = Condition(lambda: bool(terminal.front.outbox))
    erases = free & ~vi_navigation_mode
    return (
        ("send", free, terminal.enter, (("enter",),)),
        ("newline", free, editor.newline, (("escape", "enter"), ("c-j",))),
        ("queue", free & working & ~menu & ~empty, terminal.submit_later, (("tab",),)),
        ("", free & (menu | ~working | empty), editor.complete, (("tab",),)),
        ("", free & menu, editor.close_menu, (("escape",),)),
        ("stop", free & ~menu, terminal.escape, (("escape",),)),
        ("take_back", free, terminal.take_back, (("escape", "up"),)),
        ("", free & ~menu & empty & waits, terminal.take_back, (("up",),)),
        ("mode", free & ~menu, terminal.next_mode, (("s-tab",),)),
        ("paste_picture", free, terminal.paste_picture, (("c-v",),)),
        ("", erases, editor.backspace, (("backspace",),)),
        ("", free & empty, terminal.leave, (("c-d",),)),
        ("edit", free, editor.open_elsewhere, (("c-g",), ("c-x", "c-e"))),
    )


def asking(terminal: Keyed) -> Iterable[Binding]:
    """A question, beside the keys of its answers."""
    choosing = is_choosing(terminal)
    return (
        ("", choosing, to(terminal, Questions.choose), (("enter",),)),
        ("", choosing, to(terminal, lambda asked: asked.move(-1)), (("up",),)),
        ("", choosing, to(terminal, lambda asked: asked.move(1)), (("down",),)),
        ("", choosing, to(terminal, lambda asked: asked.scroll(-1)), (("pageup",),)),
        ("", choosing, to(terminal, lambda asked: asked.scroll(1)), (("pagedown",),)),
        ("", choosing, to(terminal, lambda asked: asked.press("w")), (("tab",),)),
        ("", choosing, to(terminal, Questions.refuse), (("escape",), ("c-d",))),
    )


def answering(terminal: Keyed) -> Iterable[Binding]:
    """Words as an answer."""
    typing = Condition(lambda: terminal.questions.is_typing)
    return (
        ("", typing, to(terminal, Questions.say), (("enter",),)),
        ("", typing, to(terminal, Questions.unsay), (("escape",),)),
    )


def anywhere(terminal: Keyed) -> Iterable[Binding]:
    """What is the same wherever somebody is."""
    always = Condition(lambda: True)
    several = Condition(lambda: len(terminal.tabs) > 1)
    numbers = (
        ("", several, partial(terminal.show_number, n), (("escape", str(n)),)) for n in range(1, 10)
    )
    return (
        *numbers,
        ("waiting", several, terminal.show_waiting, (("escape", "0"),)),
        ("cancel", always, terminal.control_c, (("c-c",),)),
        ("", always, terminal.control_c, ((Keys.SIGINT,),)),
        ("expand", always, terminal.expand, (("c-o",),)),
        ("thoughts", always, terminal.unfold, (("c-t",),)),
        ("redraw", always, terminal.redraw, (("c-l",),)),
        ("suspend", always, terminal.suspend, (("c-z",),)),
    )
