"""An output style, as a file has it: front matter, and what the model is told as the body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from crow.dataclasses import frozen
from crow.project import FrontMatter, Plugin

DEFAULT = "default"
PART = "output-styles"
KEEPS = "keep-coding-instructions"
FORCED = "force-for-plugin"


@frozen
class Style:
    """A style of talking. ``keeps`` says that Crow's own words stay, ``forced`` that it is used.

    Without a ``text`` nothing is said.
    """

    name: str
    description: str = ""
    text: str = ""
    keeps: bool = True
    forced: bool = False

    @property
    def role(self) -> tuple[Literal["append", "override"], str]:
        """What `crow.keys.ROLE` is told."""
        return ("append" if self.keeps or not self.text else "override"), self.text


BUILT_IN = (
    Style(DEFAULT, "Brief, about the work"),
    Style(
        "Explanatory",
        "Says why: the reasons for choices, and how the project is built",
        """\
# How to talk: explain

The user wants to understand the project while you work on it. Before and after you change \
something, say in two or three sentences what is worth knowing: why it is done this way and not \
another, which habit of this code it follows, what would break elsewhere. Set these notes apart \
under a line "Why:". Speak of this code, not of programming in general. Notes stand in your \
answers, never in files.\
""",
    ),
    Style(
        "Learning",
        "Leaves small pieces of code to you, for practice",
        """\
# How to talk: teach

The user wants to learn by doing. Do the work, but leave them a piece of it where there is a real \
choice to make: the heart of a function, a data structure, how an error is treated; five to ten \
lines, never boilerplate. Prepare the place in the file with a comment TODO(human) that says what \
belongs there; there is one at a time. Then say what it is for, what to weigh, and stop: do \
nothing else until they have written it. When they have, say what is good about it and what is \
not, and go on. Explain your own choices in two or three sentences as you make them.\
""",
    ),
    Style(
        "Proactive",
        "Acts at once and asks little",
        """\
# How to talk: act

Begin at once. Take what is usual where something was left open, say in a line what you took for \
granted, and go on; ask only where a wrong guess would lose work or cannot be undone. Do not stop \
to plan what you can try.\
""",
    ),
    Style(
        "Concise",
        "The result first, and nothing around it",
        """\
# How to talk: tersely

Say the result first, in as few words as are clear. No opening, no account of your steps, no \
summary of what was just said. Full sentences only where a word would be misread; code, paths and \
errors stay whole.\
""",
    ),
)


def read(path: Path, plugin: Plugin | None = None) -> Style:
    """The style of a file. Raises ``OSError`` or ``ValueError``."""
    front = FrontMatter.read(path)
    name = front.text("name") or path.stem
    return Style(
        plugin.called(name) if plugin else name,
        front.text("description"),
        front.body.strip(),
        front.flag(KEEPS),
        plugin is not None and front.flag(FORCED),
    )


def found(folders: Iterable[Path], plugins: Iterable[Plugin]) -> Iterator[Style | str]:
    """The styles of plugins and of folders, weakest first, or lines that say why one is none."""
    yield from BUILT_IN
    for plugin in plugins:
        for part in plugin.parts.get(PART, ()):
            for path in _files(part) if part.is_dir() else [part]:
                yield _style(path, plugin)
    for folder in folders:
        yield from map(_style, _files(folder))


def _files(folder: Path) -> list[Path]:
    """The files of a folder that may be styles."""
    return [each for each in sorted(folder.glob("*.md")) if each.stem.casefold() != "readme"]


def _style(path: Path, plugin: Plugin | None = None) -> Style | str:
    try:
        return read(path, plugin)
    except (OSError, ValueError) as error:
        return f"{path} is no output style: {' '.join(str(error).split())}"
