"""Answer one prompt, and end.

On a terminal it is shown as `crow` shows it: cards, questions, keys. Elsewhere standard output has
the text of the answer, and standard error what is done meanwhile.

Exit status: 0 done, 1 error, 2 usage, 130 interrupted. Without PROMPT, or where it is -, the prompt
is read from standard input; beside a PROMPT the text of a pipe or a file goes to the model with it.
Ctrl-C ends the run with a whole history, a second one at once.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING

from crow.cli.claude_options import swallower
from crow.cli.interrupt import Interrupts
from crow.cli.line_client import LineClient
from crow.cli.options import (
    agent_of,
    declare_agent,
    declare_face,
    directory,
    has_screen,
    refuse_unread,
    settings_of,
    tell_news,
    tell_problems,
)
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError
from crow.cli.prompt_run import DONE, INTERRUPTED, conclude, refuse_unknown, run_to_end
from crow.cli.session_options import check_session, declare_session, session_of
from crow.cli.stdin import attached, piped_prompt, somebody_is_there
from crow.core.errors import CrowError
from crow.keys import STRUCTURED_OUTPUT

if TYPE_CHECKING:
    from crow.cli.ask import Asker
    from crow.cli.jsonl import Lines
    from crow.core.agent import Agent
    from crow.core.hooks.run_context import Reply
    from crow.core.session import Session
    from crow.settings import Settings

SETTING_UP = {
    "init": "run the Setup hooks of the settings first",
    "init-only": "run these and the SessionStart hooks, and no prompt",
    "maintenance": "run the Setup hooks that maintain something first",
}
FORMATS = ("text", "json", "stream-json")
LINES = "lines"
"""Crow's own events, a line each."""
SERVER = 10.0
"""Seconds until a model's server on this machine must listen, where nobody looks on."""


def declare(parser: Parser) -> None:
    """The options of ``crow run``."""
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="what to do")
    declare_agent(parser)
    declare_session(parser)
    setting_up = parser.add_mutually_exclusive_group()
    for name, text in SETTING_UP.items():
        setting_up.add_argument(f"--{name}", action="store_true", help=text)
    declare_face(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--output-format",
        dest="form",
        choices=FORMATS,
        default="text",
        help="text; as `claude -p` has them: json, the result as one object; stream-json, messages",
    )
    form.add_argument(
        "--json",
        dest="form",
        action="store_const",
        const=LINES,
        help="one event a line, for programs",
    )
    parser.add_argument(
        "--input-format",
        choices=("text", "stream-json"),
        default="text",
        help="stream-json: prompts are lines on standard input (with --output-format stream-json)",
    )
    parser.add_argument(
        "--include-partial-messages", action="store_true", help="stream-json: pieces of answers"
    )
    parser.add_argument(
        "--include-hook-events", action="store_true", help="stream-json: hooks as they run"
    )
    parser.add_argument(
        "--replay-user-messages",
        action="store_true",
        help="stream-json: tell prompts back, with the ids that files can be brought back by",
    )
    parser.add_argument(
        "--permission-prompt-tool",
        metavar="stdio",
        choices=("stdio",),
        help="stream-json: ask the program for permission",
    )
    parser.add_argument(
        "--forward-subagent-text", action="store_true", help="stream-json: what sub-agents say"
    )
    parser.add_argument(
        "--permission-prompts",
        choices=("host", "none"),
        default="host",
        help="none: what would be asked about is denied",
    )
    parser.add_argument("-p", "--print", action="store_true", help="what `crow run` does anyway")
    parser.add_argument("--verbose", action="store_true", help="what stream-json is anyway")
    parser.add_argument("-q", "--quiet", action="store_true", help="the answer and nothing else")


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow run``."""
    check_session(options)
    check_formats(options)
    is_driven = options.input_format != "text"
    prompt = "" if options.init_only or is_driven else prompt_of(options, out)
    if options.init or options.init_only or options.maintenance:
        trigger = "maintenance" if options.maintenance else "init"
        options.extensions = {"setup": {"trigger": trigger}}
    settings = settings_of(options)
    if not (out.err.isatty() or "load" in settings.timeouts):  # nobody sees what is waited for
        settings = replace(settings, timeouts={"listen": SERVER, **settings.timeouts})
    try:
        refuse_unread(settings)
        return start(options, settings, None if is_driven else prompt, out)
    except asyncio.CancelledError:
        return INTERRUPTED
    except CrowError as error:
        if options.form == LINES:
            from crow.cli.jsonl import Lines

            Lines(out).put({"type": "error", "message": str(error)})
        elif options.form != "text":
            from crow.cli.stream_json import complain

            complain(out, error)
        raise


def start(options: argparse.Namespace, settings: Settings, prompt: str | None, out: Output) -> int:
    """Answer in the form that is wanted; the exit status."""
    if not options.init_only and is_looked_at(options, out):
        from crow.cli.terminal_run import TerminalRun

        return asyncio.run(TerminalRun(options, settings, prompt or "", out).run())
    with redirect_stdout(sys.stdout if options.form == "text" else sys.stderr):
        if options.form in ("text", LINES) or options.init_only:
            return asyncio.run(answer(options, settings, prompt or "", out))
        return asyncio.run(stream(options, settings, prompt, out))


async def stream(
    options: argparse.Namespace, settings: Settings, prompt: str | None, out: Output
) -> int:
    """Answer as `claude -p` does; the exit status."""
    from crow.cli.stream_json import Streaming

    return await Streaming(options, settings, prompt, out).run()


def check_formats(options: argparse.Namespace) -> None:
    """Raise `UsageError` for forms that do not go together."""
    if options.input_format != "text" and options.form != "stream-json":
        raise UsageError("--input-format stream-json needs --output-format stream-json")
    if options.input_format != "text" and options.prompt is not None:
        raise UsageError("with --input-format stream-json prompts come on standard input alone")


def is_looked_at(options: argparse.Namespace, out: Output) -> bool:
    """True where a person watches who wants more than the answer, or something for a program."""
    wanted = options.form == "text" and options.permission_prompts != "none"
    return wanted and not options.quiet and has_screen(options, out)


def prompt_of(options: argparse.Namespace, out: Output) -> str:
    """The prompt, from the command line or standard input, with what is attached to it."""
    given = options.prompt
    if given is None and somebody_is_there():
        raise UsageError('what is to be done? crow run "PROMPT", or pipe the prompt in')
    if given in (None, "-"):
        text = piped_prompt(out, asked_for=given == "-")
    else:
        text = given.encode(errors="surrogateescape").decode(errors="replace")
    if not text.strip():
        greedy = swallower(options)
        hint = f" (behind {greedy} it stands after --)" if greedy else ""
        raise UsageError(f'the prompt is empty: crow run "PROMPT"{hint}')
    return text if given in (None, "-") else text + attached(out)


async def answer(options: argparse.Namespace, settings: Settings, prompt: str, out: Output) -> int:
    """Answer the prompt; the exit status."""
    may_ask = options.permission_prompts != "none" and options.prompt not in (None, "-")
    asker = None
    if may_ask and somebody_is_there():
        from crow.cli.ask import Asker

        asker = Asker(out)
    agent = agent_of(options, settings)
    tell_problems(settings, agent, out)
    tell_news(settings, out)
    view = client_of(options, out, asker)
    view.waits_for_servers = True
    if options.init_only:
        async with agent:
            await session_of(agent, options, settings, view)
        return DONE
    agent.llm.model  # noqa: B018 - a model that cannot be had is said before anything else
    with Interrupts(agent, out, asker, opening=True) as interrupts:
        async with agent:
            session = await session_of(agent, options, settings, view)
            interrupts.opened()
            refuse_unknown(agent, session, prompt)
            reply = await talk(agent, session, prompt, view)
    if isinstance(view, LineClient) and STRUCTURED_OUTPUT.get(session) is not None:
        out.verbatim(reply.text)
    if out.err.isatty() and isinstance(view, LineClient) and not view.quiet:
        out.note(f"session {reply.session.id[:8]}")
    return conclude(reply, view.unasked, out, interrupts.status)


async def talk(agent: Agent, session: Session, prompt: str, view: LineClient | Lines) -> Reply:
    """Answer the prompt, and what its hooks make of it."""
    view.out.when_gone = lambda: agent.cancel(session)
    if isinstance(view, LineClient):
        view.cwd = session.cwd
    else:
        view.begin(session, session.model or agent.llm.model, resumed=bool(session.messages))
    reply = await run_to_end(agent, session, prompt, view.out)
    view.conclude(reply)
    return reply


def client_of(options: argparse.Namespace, out: Output, asker: Asker | None) -> LineClient | Lines:
    """Who shows what happens."""
    if options.form != "text":
        from crow.cli.jsonl import Lines

        return Lines(out)
    told = out if out.is_terminal else out.beside()
    said = out if options.json_schema is None else told  # the answer alone is for a pipe
    return LineClient(said, told, cwd=str(directory(options)), asker=asker, quiet=options.quiet)
