"""The commands about the session itself: what there is, what is set, where it works."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from crow import Answer, Command, Context
from crow.hooks import Point
from crow.keys import INSTRUCTION_FILES, PROMPT_CACHE, Key
from crow.messages import is_prompt, weight
from crow.ports import model_named, names_of, thought_levels_of

if TYPE_CHECKING:
    from crow import Agent, CommandContext, Message, Session
    from crow.messages import ToolSpec

REQUEST: Key[tuple[list[Message], list[ToolSpec]]] = Key("commands request")
CHARACTERS = 4
SYSTEM = "system prompt"
DEFAULT = "default"
EFFORT = "reasoning_effort"
DIRECTORY_ADDED = Point(
    "on_directory_added",
    "watch",
    ("directory", "source"),
    aliases=("DirectoryAdded",),
)


def builtin_commands() -> list[Command]:
    """All of them."""
    return [
        Command("help", "List the commands", help_),
        Command("clear", "Begin the conversation anew", clear),
        Command("model", "Show or change the model", model, "[name]"),
        Command("mode", "Show or change the mode", mode, "[name]"),
        Command("think", "Show or change how hard the model thinks", think, "[level]"),
        Command("context", "Show what fills the model's window", context),
        Command("hooks", "List the hooks in the order in which they run", hooks),
        Command("extensions", "List the extensions", extensions),
        Command("cd", "Work in another directory", cd, "[directory]"),
        Command("add-dir", "Work in one more directory", add_dir, "[directory]"),
    ]


async def help_(ctx: CommandContext) -> Answer:
    """List the commands."""
    offered = sorted(ctx.agent.commands_of(ctx.session).values(), key=lambda each: each.name)
    lines = (f"- /{f'{each.name} {each.hint}'.rstrip()}: {each.description}" for each in offered)
    return Answer("\n".join(lines))


async def clear(ctx: CommandContext) -> Answer:
    """Begin a new segment with an empty history."""
    await ctx.restart_with_new_session([])
    return Answer("The conversation begins anew; the old one stays stored.")


async def model(ctx: CommandContext) -> Answer:
    """Show or change the model."""
    if not ctx.args:
        return Answer("\n".join(_model_lines(ctx.agent, ctx.session)))
    chosen = None if ctx.args == DEFAULT else ctx.args
    refused = await ctx.agent.configure(ctx.session, model=chosen)
    now = ctx.session.model or ctx.agent.llm.model
    return Answer(f"The model was not changed: {refused}" if refused else f"The model is {now}.")


def _model_lines(agent: Agent, session: Session) -> Iterator[str]:
    window = agent.context_window(session)
    size = f"{window:,} tokens" if window else "unknown size"
    yield f"The model is {session.model or agent.llm.model}, with a window of {size}."
    yield from (f"- {name}" for name in names_of(agent.llm))
    yield f"/model NAME changes it, /model {DEFAULT} takes the agent's own."


async def think(ctx: CommandContext) -> Answer:
    """Show or change how hard the model thinks."""
    levels = thought_levels_of(model_named(ctx.agent.llm, ctx.session.model))
    params: dict[str, Any] = ctx.session.options.get("params", {})
    wanted = ctx.args
    if not wanted:
        now = f"The model thinks at the level {params.get(EFFORT, DEFAULT)}."
        return Answer(f"{now}\n/think LEVEL changes it: {_listed(levels)}")
    if wanted not in (DEFAULT, *levels):
        return Answer(f"There is no level {wanted!r} for this model: {_listed(levels)}")
    rest = {name: value for name, value in params.items() if name != EFFORT}
    changed = rest if wanted == DEFAULT else {**rest, EFFORT: wanted}
    refused = await ctx.agent.configure(ctx.session, params=changed)
    said = f"The model thinks at the level {wanted}."
    return Answer(f"The level was not changed: {refused}" if refused else said)


def _listed(levels: Iterable[str]) -> str:
    return ", ".join((DEFAULT, *levels))


async def mode(ctx: CommandContext) -> Answer:
    """Show or change the mode."""
    modes = ctx.agent.modes_of(ctx.session)
    if not ctx.args:
        lines = [f"The mode is {ctx.session.mode}."]
        lines += [f"- {each.id}: {each.description or each.name}" for each in modes.values()]
        return Answer("\n".join(lines))
    if ctx.args not in modes:
        there = ", ".join(modes) or "none"
        return Answer(f"There is no mode {ctx.args!r}; there are: {there}")
    refused = await ctx.agent.configure(ctx.session, mode=ctx.args)
    if refused:
        return Answer(f"The mode was not changed: {refused}")
    return Answer(f"The mode is {ctx.session.mode}.")


async def context(ctx: CommandContext) -> Answer:
    """Show what fills the model's window, about."""
    count = await ctx.get_token_count()
    head, tools = REQUEST.get(ctx) or ([], ctx.agent.tool_specs(ctx.session))
    sizes = [(name, size // CHARACTERS) for name, size in _sizes(ctx.session, head, tools)]
    total = max(count["total_tokens"], 0 if ctx.session.usage else sum(n for _, n in sizes))
    window = count["context_window"]
    of = f" of {window:,} ({total / window:.0%})" if window else ""
    lines = [f"The conversation has about {total:,} tokens{of}. In it, about:"]
    read = (INSTRUCTION_FILES.get(ctx) or {}).items()
    files = [f"  - {path}: {size // CHARACTERS:,}" for path, size in read]
    for name, size in sizes:
        lines += [f"- {name}: {size:,}", *(files if name == SYSTEM else ())]
    known = PROMPT_CACHE.get(ctx)
    told = known.lines if known is not None else ()
    lines += [f"- {line}" if line == line.strip() else line for line in told]
    return Answer("\n".join(lines))


def _sizes(
    session: Session, head: list[Message], tools: list[ToolSpec]
) -> Iterator[tuple[str, int]]:
    """What there is in a request, and how many characters each has."""
    yield SYSTEM, sum(map(weight, head))
    yield f"tools ({len(tools)})", len(json.dumps(tools, ensure_ascii=False)) if tools else 0
    sizes: dict[str, int] = dict.fromkeys(
        ("prompts", "added context", "answers and calls", "results of tools"), 0
    )
    for message in session.messages:
        sizes[_sort(message)] += weight(message)
    yield from sizes.items()


def _sort(message: Message) -> str:
    match message["role"]:
        case "assistant":
            return "answers and calls"
        case "tool":
            return "results of tools"
        case "user" if is_prompt(message):
            return "prompts"
        case _:
            return "added context"


async def hooks(ctx: CommandContext) -> Answer:
    """List the hooks, point by point, in the order in which they run."""
    lines: list[str] = []
    for name, hook_point in ctx.agent.hooks.points.items():
        if line := hook_point.chain(ctx.session):
            lines.append(f"- {name}: {', '.join(map(_described, line))}")
    for event, owner, extension in ctx.agent.hooks.waiting:
        lines.append(f"- {event}: {owner} (waits for the extension {extension})")
    return Answer("\n".join(lines) or "There are no hooks.")


def _described(hook: Any) -> str:
    marks = [f"order {hook.order}"] if hook.order else []
    marks += [f"only {', '.join(sorted(hook.tools))}"] if hook.tools is not None else []
    marks += [word for word in ("judge", "background", "off") if getattr(hook, word)]
    return f"{hook} ({'; '.join(marks)})" if marks else str(hook)


async def extensions(ctx: CommandContext) -> Answer:
    """List the extensions, and what became of those that were looked for."""
    sources = {name: found.source for found in ctx.agent.found for name in found.names}
    used = ctx.agent.extensions
    lines = [f"- {name} ({sources[name]})" if name in sources else f"- {name}" for name in used]
    lines += [
        f"- {found.name} ({found.source}): {found.error or 'disabled'}"
        for found in ctx.agent.found
        if found.error or found.disabled
    ]
    return Answer("\n".join(lines) or "There are no extensions.")


class DirectoryContext(Context):
    """A directory was added to those that a session works in."""

    __slots__ = ("directory", "source")

    def __init__(self, ctx: Context, directory: str) -> None:
        super().__init__(ctx.agent, ctx.session, ctx.run)
        self.directory = directory
        self.source: Literal["slash_command"] = "slash_command"


async def add_dir(ctx: CommandContext) -> Answer:
    """Work in one more directory until the session ends; the model is told."""
    session = ctx.session
    if not ctx.args:
        there = "\n".join(f"- {path}" for path in session.roots)
        return Answer(f"This session works in:\n{there}\n/add-dir DIRECTORY adds one.")
    path = _meant(ctx)
    if not os.path.isdir(path):  # noqa: PTH112 - a path may be any text
        return Answer(f"There is no directory {path}.")
    if any(is_inside(path, root) for root in session.roots):
        return Answer(f"{path} is worked in already.")
    session.directories = (*session.directories, path)
    await ctx.inject_context(f"The user has added a directory to work in: {path}")
    await ctx.agent.hooks[DIRECTORY_ADDED.name].fire(DirectoryContext(ctx, path))
    return Answer(f"This session works in {path}, too.")


async def cd(ctx: CommandContext) -> Answer:
    """Work in another directory from now on; the model is told."""
    old = ctx.cwd
    if not ctx.args:
        return Answer(f"This session works in {old}.\n/cd DIRECTORY goes to another one.")
    path = _meant(ctx)
    if not os.path.isdir(path):  # noqa: PTH112 - a path may be any text
        return Answer(f"There is no directory {path}.")
    if path == old:
        return Answer(f"This session works in {path} already.")
    await ctx.inject_context(
        f"The user has changed the working directory: from now on commands start in {path}, and "
        f"relative paths mean files there. It was {old}."
    )
    await ctx.change_directory(path)
    return Answer(f"This session works in {path} now.")


def _meant(ctx: CommandContext) -> str:
    """The directory that was typed, absolute."""
    written = os.path.expanduser(ctx.args.strip("'\""))
    return os.path.normpath(os.path.join(ctx.cwd, written))  # noqa: PTH118


def is_inside(path: str, root: str) -> bool:
    """True for a directory itself and everything below it."""
    return f"{path}{os.sep}".startswith(f"{root.rstrip(os.sep)}{os.sep}")
