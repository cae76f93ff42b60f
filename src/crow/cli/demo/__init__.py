"""Three prompts with the embedded model: real tools, real hooks, no key, no network.

Plays in a fresh folder of its own, and prints a [HOOK] line for every point that fires. The third
prompt is stopped by a hook; then the same prompt is played once more without that hook, in which
case the tools themselves reach nothing but the folder.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow.cli.output import Output, Style
from crow.cli.parser import Parser

if TYPE_CHECKING:
    from crow.cli.demo.project import DemoFolder
    from crow.core.agent import Agent
    from crow.core.session import Session

READ = "Read the file README.md"
CREATE = "Create a file called test.txt"
DELETE = "Delete all temporary files in /tmp"
FREQUENT = ("[HOOK] on_update", "[HOOK] on_message")
LOUD: tuple[Style, ...] = ("cyan",)
QUIET: tuple[Style, ...] = ("cyan", "dim")


def declare(parser: Parser) -> None:
    """``crow demo`` has no options."""


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow demo``."""
    from crow.cli.demo import project

    return asyncio.run(play(project.make(), out))


async def play(place: DemoFolder, out: Output) -> int:
    """Play the prompts, then say where everything is."""
    from crow.cli.demo import hooks
    from crow.cli.line_client import LineClient

    introduce(place, hooks.__file__, out)
    agent = make_agent(place, out)
    async with agent:
        session = await agent.new_session(
            place.project, client=LineClient(out, cwd=str(place.project), asker=None)
        )
        for number, prompt in enumerate((READ, CREATE, DELETE), 1):
            await ask(agent, session, f"{number}", prompt, out)
        explain(agent, session, place, out)
        agent.remove("permission_hook")
        await ask(agent, session, "3, without the hook", DELETE, out)
    conclude(agent, session, place, out)
    return 0


def introduce(place: DemoFolder, hooks: str, out: Output) -> None:
    """Say what is about to be seen."""
    out.line("Crow's demonstration: the loop is real, the tools are real, the hooks are real;")
    out.line("the model is a rehearsal that understands a few plain requests.")
    out.line()
    for name, text in (
        ("project", f"{place.project}"),
        ("/tmp", f"{place.tmp} stands for it; there: {place.files()}"),  # noqa: S108
        ("hooks", f"{hooks}, written as a user writes them"),
        (
            "[HOOK]",
            "every point that fires. UserPromptSubmit, PreToolUse, PostToolUse and Stop are",
        ),
        ("", "other names of before_run, before_tool, after_tool and on_stop."),
    ):
        out.raw(f"  {out.styled(f'{name:8}', 'bold')} {text}")
    out.line()


def make_agent(place: DemoFolder, out: Output) -> Agent:
    """An agent of parts: the embedded model, fenced tools, five hooks, a store, a log."""
    from crow.cli.demo.fence import Fence, fenced_tools
    from crow.cli.demo.hooks import HOOKS
    from crow.core.agent import Agent
    from crow.extensions import HookLog, PersistenceHook
    from crow.llm import Rehearsal

    def log(line: str) -> None:
        out.line(line, *QUIET if line.startswith(FREQUENT) else LOUD)

    tools = fenced_tools(Fence(place.project, place.tmp))
    agent = Agent(Rehearsal(), tools=tools)
    for hook in (PersistenceHook(), HookLog(log), *HOOKS):
        agent.use(hook, source="crow")
    return agent


async def ask(agent: Agent, session: Session, number: str, prompt: str, out: Output) -> None:
    """One prompt, from its arrival to the last hook."""
    out.line()
    out.raw(out.styled(f"── {number}: {prompt}", "bold"))
    await agent.run(prompt, session=session)
    out.start_line()


def explain(agent: Agent, session: Session, place: DemoFolder, out: Output) -> None:
    """Show who stopped the third prompt: the record of the hook that decided."""
    from crow.core import loop
    from crow.core.verdicts import Deny

    denials = [record for record in session.trace if isinstance(record.answer, Deny)]
    out.line()
    out.raw(out.styled("── Who stopped it? What the session's trace says about that call:", "bold"))
    for record in denials[-1:]:
        for each in session.trace.of_call(record.call_id or ""):
            says = answer_of(each.answer)
            out.line(f"  {each.event:12} {each.owner:18} {says}", *(("red",) if says else ("dim",)))
        out.line(f"  {record.owner} is written in {where(agent, record.owner)}")
    out.line(f"  The loop, {loop.__file__}, has no word about permissions.")
    out.line(f"  In {place.tmp} is still: {place.files()}")
    out.line('  Now the same prompt after agent.remove("permission_hook"):')


def answer_of(answer: object) -> str:
    """A verdict in words."""
    reason = getattr(answer, "reason", "")
    return f"{type(answer).__name__}: {reason}" if reason else ""


def where(agent: Agent, name: str) -> str:
    """File and line of an extension that is a function."""
    thing: Any = agent.extensions[name]
    _, line = inspect.getsourcelines(thing)
    return f"{inspect.getsourcefile(thing)}:{line}"


def conclude(agent: Agent, session: Session, place: DemoFolder, out: Output) -> None:
    """Say what came of it, and how to look at it."""
    from crow.cli.demo import fence

    out.line(f"  In {place.tmp} is now: {place.files()}")
    out.line(f"  Nothing outside of {place.folder} was within reach:")
    out.line(f"  {fence.__file__}")
    out.line()
    path = getattr(agent.extensions.get("persistence"), "path", "")
    short = session.id[:8]
    out.raw(out.styled(f"── The session is stored{f' in {Path(path)}' if path else ''}", "bold"))
    crow = command()
    out.line(f"  {crow} sessions show {short}")
    out.line(f'  {crow} run --resume {short} --model rehearsal "Read the file test.txt"')


def command() -> str:
    """How the command is called here: by its path where a shell does not find it."""
    called = sys.argv[0]
    return called if Path(called).name == "crow" and shutil.which("crow") is None else "crow"
