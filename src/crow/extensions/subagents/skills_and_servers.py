"""The skills and servers that an agent's file names for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crow.extensions.subagents.definition import Definition
from crow.keys import Key
from crow.ports import ServerConnector, SkillReader, first_implementing
from crow.project import FrontMatter, is_trusted, project_of

if TYPE_CHECKING:
    from crow import Context, ToolContext

TOLD: Key[set[str]] = Key("subagents.told")
"""Where a session has the agents of whose files somebody was told what is wrong."""


async def prepared(call: ToolContext, definition: Definition) -> Definition:
    """A definition with the texts of its skills; those that are not there are named once.

    Nobody is told what a plugin's has, for nobody can mend it.
    """
    known = TOLD.setdefault(call, set[str]())
    faults: list[str] = []
    used = call.agent.extensions_of(call.session).values()
    skills = first_implementing(used, SkillReader)
    prompt = definition.prompt
    for name in FrontMatter(dict(definition.front_matter), "").names("skills") or ():
        text = await skills.skill_text(call, name) if skills else None
        faults += [] if text else [f"it has no skill {name}: there is none"]
        prompt += f"\n\n{text}" if text else ""
    if faults and not definition.of_plugin and definition.name not in known:
        known.add(definition.name)
        told = f"the sub-agent {definition.name}: {'; '.join(faults)}"
        await call.ui.notify(told, severity="warning")
    return replace(definition, prompt=prompt)


async def servers_of(ctx: Context, definition: Definition) -> object | None:
    """Who connects to the servers that an agent's file describes; None where nobody has to.

    A project's file starts none before the user has trusted the project as it is now.
    """
    described = definition.servers
    used = ctx.agent.extensions_of(ctx.session).values()
    maker = first_implementing(used, ServerConnector)
    if not described or maker is None:
        return None
    project, path = project_of(ctx.session.root.cwd), Path(definition.source)
    is_projects = project != Path.home() and path.is_relative_to(project)
    if is_projects and not is_trusted(project, path):
        told = f"{path} is of a project that is not trusted (crow trust): its servers do not start"
        await ctx.ui.notify(told, severity="warning")
        return None
    return maker.own_servers(described, definition.source, definition.may_have)
