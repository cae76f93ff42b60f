"""The commands on sessions in a conversation: go on in another one, name, copy, keep them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from crow.cli.rewind_files import BACK, UNTOUCHED, RewindDialog, is_keepers, keeper_of
from crow.cli.session_lookup import store_of, store_with, whole_id
from crow.core.catalog import Command
from crow.core.errors import CrowError
from crow.core.ports.client import Question
from crow.core.support.frozen import frozen
from crow.ports.stores import ForkStore, SessionPoint, TitleStore, TreeStore

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.hooks.contexts import CommandContext
    from crow.core.session import Session
    from crow.terminal.tab import Tab

Showing: TypeAlias = "Callable[[Session, bool], Awaitable[None]]"
"""Lets a session be the one that is talked to; True tells again what was said in it."""


class Face(Protocol):
    """A face that the person is told and asked in."""

    def tell(self, text: str, *, is_error: bool = False) -> None:
        """Say something."""
        ...

    async def ask(self, session_id: str, question: Question) -> Any:
        """Ask something."""
        ...


@frozen
class LocalCommand:
    """A command of the terminal's own, which no model hears of.

    One that is ``at_once`` does not wait for the end of a run.
    """

    description: str
    act: Callable[[Any, str], Awaitable[None]]
    hint: str = ""
    at_once: bool = False


class SessionCommands:
    """The commands on the session that is talked to, in any terminal."""

    def __init__(self, agent: Agent, session: Session, face: Face) -> None:
        self.agent = agent
        self.session = session
        self.face = face
        self._own: dict[str, LocalCommand] = {}

    def offer(self, commands: Mapping[str, LocalCommand]) -> None:
        """List commands among the others, where nobody else has taken their names.

        What keeps files gives ``/rewind`` to clients without a list to choose from.
        """
        for name, own in commands.items():
            known = self.agent.commands_of(self.session).get(name)
            if known is None:
                self.agent.add_command(Command(name, own.description, nothing, own.hint))
            elif known.run is not nothing and not is_keepers(known):
                continue
            self._own[name] = own

    def meant(self, prompt: str) -> LocalCommand | None:
        """The command that a prompt is; None where it is none of these."""
        name = prompt.strip().partition(" ")[0]
        return self._own.get(name.removeprefix("/")) if name.startswith("/") else None

    async def obey(self, prompt: str) -> bool:
        """Do what a prompt wants; False where it is none of these commands."""
        if (own := self.meant(prompt)) is None:
            return False
        args = prompt.strip().partition(" ")[2]
        try:
            await own.act(self, args.strip())
        except (CrowError, OSError) as error:
            self.face.tell(str(error), is_error=True)
        return True

    async def rename(self, title: str) -> None:
        """Give the session a title."""
        if not title:
            called = f"it is called {self.session.title!r}" if self.session.title else "no title"
            self.face.tell(f"/rename TITLE; {called}")
            return
        if self.agent.store is not None:
            await store_with(self.agent.store, TitleStore).rename(self.session.id, title)
        self.session.title = title
        self.face.tell(f"this session is called {title!r}")

    async def export(self, name: str) -> None:
        """Write the conversation into a file."""
        from crow.cli import export

        name = os.path.expanduser(name or export.default_name(self.session))
        path = Path(self.session.cwd, name)
        as_json = path.suffix.casefold() == ".json"
        text = await export.exported(self.agent, self.session, as_json=as_json)
        try:
            export.write(path, text, overwrites=False)
        except FileExistsError:
            question = Question(f"Overwrite {path}, which is there already?", "confirm")
            if not await self.face.ask(self.session.id, question):
                self.face.tell(f"{path} stays as it was; nothing was written")
                return
            export.write(path, text, overwrites=True)
        self.face.tell(f"the conversation is in {path}, without the secrets that Crow knows")


class ScreenCommands(SessionCommands):
    """The commands that the screen has beside: another session is talked to then."""

    face: Tab

    def __init__(self, agent: Agent, session: Session, tab: Tab, shows: Showing) -> None:
        super().__init__(agent, session, tab)
        self._shows = shows

    async def go(self, session_id: str, source: str, *, tells: bool) -> None:
        """Talk to another session, and let the present one go; to one in a tab, there."""
        for tab in self.face.window.tabs:
            if tab.transcript.session_id == session_id:
                self.face.window.show(tab)
                return
        before = self.session
        session = await self.agent.load_session(session_id, client=self.face, source=source)
        self.session = session
        await self.agent.close_session(before, "replaced")
        await self._shows(session, tells)

    async def resume(self, start: str) -> None:
        """Go on in a stored session."""
        from crow.cli.pickers import choose_session

        store, here = store_of(self.agent), self.session
        if start:
            chosen = await whole_id(store, start)
        else:
            chosen = await choose_session(store, here.cwd, self.face)
        if chosen == here.id:
            self.face.tell("you are in this session")
        elif chosen is not None:
            await self.go(chosen, "resume", tells=True)

    async def sessions(self, _: str) -> None:
        """Go to another session of this window."""
        from crow.cli.pickers import choose_tab

        if (tab := await choose_tab(self.face)) is not None:
            self.face.window.show(tab)

    async def close(self, _: str) -> None:
        """Talk no more to this session."""
        self.face.leave()

    async def tree(self, _: str) -> None:
        """Go on from any point of the conversation and of its forks."""
        from crow.cli.pickers import choose_point

        store, here = store_of(self.agent), self.session.id
        points = await store_with(store, TreeStore).tree(here)
        if not points:
            self.face.tell("nothing was said yet")
            return
        point = await choose_point(points, "Go on from", self.face)
        if point is None:
            return
        if point.before is not None:
            await self._fork(point.session_id, point)
        elif point.session_id == here:
            self.face.tell("you are there")
        else:
            await self.go(point.session_id, "resume", tells=True)

    async def rewind(self, words: str) -> None:
        """Go back to before an earlier prompt, which can be edited, and bring files back."""
        keeper, word = keeper_of(self.agent, self.session), words.strip()
        going = RewindDialog(keeper, self.session, self.face)
        if word == BACK:
            self.face.tell(await going.undo())
            return
        points = await store_with(store_of(self.agent), TreeStore).tree(self.session.id)
        prompts = [each for each in points if each.is_here and each.kind == "prompt"]
        if not prompts:
            self.face.tell("there is no earlier prompt")
            return
        head = "Back to before which prompt?" + ("" if keeper else f" {UNTOUCHED}")
        point = await self._prompt(prompts, word, head)
        if point is not None and await going.choose(point.at):
            said = await going.bring_back()
            if going.talks:
                await self._fork(point.session_id, point, said)
            else:
                self.face.tell(said)

    async def _prompt(
        self, prompts: Sequence[SessionPoint], word: str, head: str
    ) -> SessionPoint | None:
        """The prompt of a number, else one that is chosen."""
        from crow.cli.pickers import choose_point

        if not word:
            return await choose_point(prompts, head, self.face)
        if word.isdecimal() and 1 <= int(word) <= len(prompts):
            return prompts[int(word) - 1]
        self.face.tell(f"there is no prompt {word!r}: a number up to {len(prompts)}, or {BACK}")
        return None

    async def _fork(self, origin: str, point: Any, files: str = UNTOUCHED) -> None:
        """Talk to a copy that ends at a point; what was asked there stands in the editor."""
        before = self.session.id
        copied = await store_with(store_of(self.agent), ForkStore).fork(origin, before=point.before)
        is_prompt = point.kind == "prompt"
        tells = not is_prompt or not point.is_here
        await self.go(copied, "fork", tells=tells)
        where = "before that prompt" if is_prompt else "behind that answer"
        left = f"crow --resume {before[:8]} is where you were"
        self.face.tell(f"this is a fork from {where}; {files}; {left}")
        if is_prompt:
            self.face.put_back(point.text)


async def nothing(ctx: CommandContext) -> None:
    """Do nothing: the terminal reads these words by itself."""


SESSION_COMMANDS: Mapping[str, LocalCommand] = {
    "export": LocalCommand(
        "Write the conversation into a file, as Markdown or .json", SessionCommands.export, "[FILE]"
    ),
    "rename": LocalCommand(
        "Give this session a title", SessionCommands.rename, "TITLE", at_once=True
    ),
}
SCREEN_COMMANDS: Mapping[str, LocalCommand] = {
    **SESSION_COMMANDS,
    "close": LocalCommand(
        "Close this session; the last one leaves", ScreenCommands.close, at_once=True
    ),
    "resume": LocalCommand(
        "Go on in another session, chosen from a list", ScreenCommands.resume, "[ID]"
    ),
    "rewind": LocalCommand(
        "Go back to before an earlier prompt (Esc Esc)", ScreenCommands.rewind, "[NUMBER|back]"
    ),
    "sessions": LocalCommand("Go to another open session", ScreenCommands.sessions, at_once=True),
    "tree": LocalCommand(
        "Go on from any point of the conversation and its forks", ScreenCommands.tree
    ),
}
