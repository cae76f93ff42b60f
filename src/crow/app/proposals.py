"""Proposed extensions: texts that the user was shown, put into use while Crow runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crow.app.composer import FOLDER
from crow.app.extension_reloader import ExtensionReloader
from crow.core.extensions import Found
from crow.core.session import Session
from crow.entry_points import OURS, entry_points


class Proposed:
    """Uses texts as extensions of an agent: its `crow.project.Proposals`."""

    def __init__(self, reloading: Callable[[], ExtensionReloader]) -> None:
        self.reloading = reloading

    def folder(self) -> Path:
        """The user's own extensions."""
        return Path.home() / FOLDER

    def refusal(self, session: Session, path: Path) -> str:
        """Why the extension of a file cannot be put into use now; empty where it can."""
        name = path.stem
        reloading = self.reloading()
        if reloading.is_busy(session):
            return "another session is at work: load it when that is done"
        if name in reloading.composer.disabled:
            return f"the settings disable the extension {name}"
        places = {str(path), str(self.folder() / path.name)}
        if any(name in found.names and found.source in places for found in reloading.agent.found):
            return ""
        by = [each.source for each in reloading.agent.hooks.owners if each.name == name]
        by += [OURS if each.own else each.value for each in entry_points() if each.name == name]
        return f"the name {name} is taken by {by[0]}: give the file another one" if by else ""

    def in_use(self, path: Path) -> str | None:
        """The text that is in use by the name of a file, else what lies there of the user's."""
        reloading, own = self.reloading(), self.folder() / path.name
        text = reloading.sources.texts.get(path.stem)
        if text is not None:
            return text
        sources = [Path(each.source) for each in reloading.agent.found if path.stem in each.names]
        place = next(iter(sources), own)
        return place.read_text("utf-8", "replace") if place.is_file() else None

    async def load(self, path: Path, text: str, *, keep: bool) -> Found:
        """Use a text in the place of what was in use by its name."""
        own = self.folder() / path.name if keep or path.parent == self.folder() else None
        return await self.reloading().use_text(path, text, own)
