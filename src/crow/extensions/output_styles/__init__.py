"""Output styles: how the agent talks, by name; the one that was chosen is in the system prompt."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow import Answer, Command, hook
from crow.dataclasses import frozen
from crow.hooks import FIRST
from crow.keys import OUTPUT_STYLE, ROLE

if TYPE_CHECKING:
    from crow import Agent, CommandContext, Context, Session, SessionContext, TurnContext
    from crow.extensions.output_styles.style import Style
    from crow.project import Plugin, ProjectSettings

DEFAULT, PART = "default", "output-styles"
OPTION = "output_style"
"""What it is called in a session's options."""
FOLDERS = (".claude/output-styles", ".crow/output-styles")
USER_FOLDERS = tuple(f"~/{folder}" for folder in FOLDERS)


@frozen
class OutputStylesOptions:
    """The settings of output styles."""

    style: str = DEFAULT
    """The one to begin with, by name: `outputStyle` says the same."""
    folders: Sequence[str] = USER_FOLDERS
    """Folders of styles, in place of those of the user's home and the project."""


class OutputStylesHook:
    """Lets the user choose how the agent talks, by name.

    ``style`` is the one to begin with, ``/output-style NAME`` changes it. A style is a Markdown
    file in one of ``folders``, the last of a name counts; those of ``plugins`` are called
    ``plugin:name``. Its text stands in the place of Crow's own words, or behind them
    (``keep-coding-instructions``). A sub-agent has none, nor has a session that runs as an agent,
    or whose client has words of its own.
    """

    name = "output_styles"
    order = 35
    is_its_options = True
    options = OutputStylesOptions

    def __init__(
        self,
        style: str = DEFAULT,
        *,
        folders: Sequence[str | Path] = USER_FOLDERS,
        plugins: Iterable[Plugin] = (),
    ) -> None:
        self.style = style
        self.folders = tuple(folders)
        self.plugins = tuple(plugins)

    @classmethod
    def options_from(cls, settings: ProjectSettings, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the folders of a trusted project, the strongest, and the plugins."""
        projects = [Path(settings.project)] if settings.trusted else []
        roots = dict.fromkeys([Path.home(), *projects])
        folders = [root / name for root in roots for name in FOLDERS]
        return {"folders": folders, "plugins": settings.plugins, **own}

    def configure(self, **options: Any) -> None:
        """Take other options, and read the files again."""
        vars(self).update(vars(type(self)(**options)))
        vars(self).pop("_found", None)

    def brought_by(self, plugin: Plugin) -> dict[str, list[str]]:
        """The styles of a plugin, by their names."""
        if PART not in plugin.parts or not plugin.parts[PART]:
            return {}
        from crow.extensions.output_styles.style import BUILT_IN, found

        styles = [each.name for each in found((), [plugin]) if not isinstance(each, str)]
        return {"output styles": styles[len(BUILT_IN) :]}

    @cached_property
    def _found(self) -> tuple[dict[str, Style], list[str]]:
        """The styles by name, and what is wrong with the files."""
        from crow.extensions.output_styles.style import found

        every = list(found(self._folders, self.plugins))
        styles = {each.name: each for each in every if not isinstance(each, str)}
        return styles, [each for each in every if isinstance(each, str)]

    @property
    def _folders(self) -> list[Path]:
        """The folders that there are."""
        found = (Path(os.path.expanduser(folder)) for folder in self.folders)
        return [each for each in found if each.is_dir()]

    def _is_plain(self, session: Session | None = None) -> bool:
        """True where nobody has chosen a style: then nothing is read."""
        wanted = (session.options.get(OPTION) if session else None) or self.style
        return wanted == DEFAULT and not any(each.parts.get(PART) for each in self.plugins)

    @property
    def styles(self) -> Mapping[str, Style]:
        """The styles by name."""
        return self._found[0]

    def chosen(self, session: Session) -> Style | None:
        """The style of a session; None where there is none of the name that was chosen."""
        forced = next((name for name, each in self.styles.items() if each.forced), self.style)
        return self.named(str(session.options.get(OPTION) or forced))

    def named(self, name: str) -> Style | None:
        """The style of a name, in whatever case; that of a plugin also by its last part."""
        from crow.project import matching_names

        known = {each.casefold(): each for each in self.styles}
        meant = matching_names(name.casefold(), known)
        return self.styles[known[meant[0]]] if len(meant) == 1 else None

    @property
    def choices(self) -> Mapping[str, tuple[str, Mapping[str, str]]]:
        """What a client can offer, where there is more than what comes with Crow."""
        if self._is_plain() and not self._folders:
            return {}
        return {OPTION: ("Style", {name: each.description for name, each in self.styles.items()})}

    def init_agent(self, agent: Agent) -> None:
        """Add the command."""
        told = "Show or change how the agent talks"
        agent.add_command(Command("output-style", told, self._command, "[name]"))

    async def on_session_start(self, ctx: SessionContext) -> None:
        """Say what is wrong with the files and the choice."""
        if self._is_plain(ctx.session):
            return self._tell(ctx)
        for problem in self._found[1]:
            await ctx.ui.notify(problem, severity="warning")
        if ctx.session.parent is None and self.chosen(ctx.session) is None:
            wanted = ctx.session.options.get(OPTION) or self.style
            await ctx.ui.notify(f"{_unknown(str(wanted), self.styles)}; none is used")
        return self._tell(ctx)

    @hook("before_llm_request", order=FIRST)
    def choose(self, ctx: TurnContext) -> None:
        """Say which style is chosen by now, before the system message is put together."""
        self._tell(ctx)

    def _tell(self, ctx: Context) -> None:
        if ctx.session.parent is not None or (ROLE.get(ctx) or ("", ""))[0] == "agent":
            return
        style = None if self._is_plain(ctx.session) else self.chosen(ctx.session)
        OUTPUT_STYLE.set(ctx, style.name if style else DEFAULT)
        ROLE.set(ctx, style.role if style else ("append", ""))

    async def _command(self, ctx: CommandContext) -> Answer:
        """Show or change it."""
        if not ctx.args:
            now = self.chosen(ctx.session)
            lines = [f"The style is {now.name if now else DEFAULT}; /output-style NAME changes it."]
            told = (f"{name}: {each.description}" for name, each in self.styles.items())
            return Answer("\n".join([*lines, *(f"- {line}".rstrip(": ") for line in told)]))
        style = self.named(ctx.args)
        if style is None:
            return Answer(_unknown(ctx.args, self.styles))
        refused = await ctx.agent.configure(ctx.session, **{OPTION: style.name})
        if refused:
            return Answer(f"The style was not changed: {refused}")
        if (ROLE.get(ctx) or ("", ""))[0] == "agent":
            return Answer(
                f"The style is {style.name}, but this session runs as an agent, which has none."
            )
        return Answer(f"The style is {style.name} in this session; outputStyle sets it for all.")


def _unknown(name: str, styles: Iterable[str]) -> str:
    return f"there is no output style {name!r}; there are: {', '.join(styles)}"
