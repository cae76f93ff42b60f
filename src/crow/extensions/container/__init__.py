"""Container: a session's commands run in one that commands of the settings make and enter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Annotated

from crow import (
    Agent,
    Arg,
    Deny,
    PromptSection,
    Session,
    SessionContext,
    ToolContext,
    ToolResult,
    hook,
)
from crow.dataclasses import entity
from crow.extensions.container.container import Container, ContainerError, Recipe, listed
from crow.extensions.container.launcher import ContainerLauncher
from crow.hooks import LAST, NextCall
from crow.keys import SANDBOX, Key

__all__ = ["Container", "ContainerError", "ContainerHook", "Recipe", "listed"]

ORDER = 60
SECTION = (
    "Commands (Bash) run in a container{image}; the working directory is there under the same "
    "name. Files that you read and write are those of the working directory."
)
BOTH = (
    "Commands of this session would run in a container, and not in the sandbox that whoever judges "
    'them counts on: put "sandbox" into extensions.disable.'
)


@entity
class ContainerHook:
    """Runs a session's commands in a container of its own, which ends with the session.

    Files are read and written on this machine: the container must see the working directory under
    the same name. Hooks and MCP servers run outside.
    """

    name = "container"
    order = LAST
    is_its_options = True

    _: KW_ONLY
    start: str
    """What makes it, such as ``docker run -d --name $name $mounts -w $folder $image sleep inf``."""
    exec: str
    """What enters it, such as ``docker exec -i -w $cwd $env $name``; the command comes behind."""
    stop: str = ""
    """What removes it, such as ``docker rm -f $name``."""
    list: str = ""
    """What prints the names of those that there are, for a fleet to remove what nobody needs."""
    input: str = ""
    """What ``start`` reads, such as a manifest."""
    image: str = ""
    """What ``$image`` stands for."""
    mount: str = ""
    """The words for each path of ``$mounts``, such as ``-v $path:$path:$mode`` (``rw``, ``ro``)."""
    variable: str = ""
    """The words that ``$env`` stands for, for each ``$variable``, such as ``-e $variable``."""
    environment: Sequence[str] = ()
    """The names of variables that commands inside get from outside."""
    shell: str = "bash"
    """The shell inside."""
    seconds: Annotated[float, Arg(minimum=1)] = 120.0
    """Seconds for it to answer in, when it has been started."""

    def __post_init__(self) -> None:
        self._given: Container | None = None

    def init_agent(self, agent: Agent) -> None:
        """Tell the model what its commands run in."""
        image = f" of the image {self.image}" if self.image else ""
        agent.add_section(PromptSection(self.name, SECTION.format(image=image), ORDER))

    def use(self, container: Container) -> None:
        """Have sessions use a container that somebody else keeps, and does away with."""
        self._given = container

    @hook("before_tool", tools=["Bash"])
    async def check(self, ctx: ToolContext) -> Deny | None:
        """Refuse commands that are judged as if they ran elsewhere."""
        sandbox = SANDBOX.get(ctx)
        is_held = sandbox is not None and await asyncio.to_thread(lambda: sandbox.name)
        return Deny(BOTH) if is_held else None

    @hook("around_tool", order=LAST, tools=["Bash"])
    async def enter(self, ctx: ToolContext, call_next: NextCall) -> ToolResult:
        """Run a command inside; one that cannot runs nowhere."""
        try:
            await self._of(ctx.session).start()
        except ContainerError as error:
            return ToolResult(f"The container cannot be had: {error}", error=True)
        ctx.launcher = ContainerLauncher(self._of(ctx.session), self.shell, self.environment)
        return await call_next()

    @hook("on_session_end")
    async def remove(self, ctx: SessionContext) -> None:
        """Remove it, where nobody else keeps it."""
        container = None if ctx.session.parent is not None else CONTAINER.pop(ctx.session)
        if container is not None and container is not self._given:
            await container.stop()

    def _of(self, session: Session) -> Container:
        """That of a session; its sub-agents share it."""
        if self._given is not None:
            return self._given
        root = session.root
        found = CONTAINER.get(root)
        if found is None:
            found = Container(self, f"crow-{root.id}", root.cwd, root.roots)
            CONTAINER.set(root, found)
        return found


CONTAINER: Key[Container] = Key("container")
