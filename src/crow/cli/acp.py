"""Speak the Agent Client Protocol, with the editor that started it or with clients that connect."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such

if TYPE_CHECKING:
    from crow.acp.initialize import AgentCapabilities
    from crow.core.agent import Agent


def declare(parser: Parser) -> None:
    """The options of ``crow acp``."""
    from crow.cli.acp_listen import declare_listening
    from crow.cli.options import declare_agent, seconds

    declare_agent(parser)
    declare_listening(parser)
    parser.add_argument(
        "--protocol",
        type=int,
        choices=(1, 2),
        default=1,
        help="speak up to this version of the protocol; 2 is a draft",
    )
    parser.add_argument(
        "--ask-timeout",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="deny what the client is asked for and does not answer for so long (default: wait)",
    )
    parser.add_argument(
        "--proxy",
        action="store_true",
        help="put your hooks and permissions in front of another agent: --proxy -- AGENT ...",
    )
    parser.add_argument(
        "command", metavar="agent", nargs="*", help="--proxy: the agent's command, behind --"
    )
    parser.add_argument("--login", action="store_true", help="do what crow login does, and end")
    parser.add_argument(
        "--print-config",
        metavar="EDITOR",
        help="print what this editor needs to start Crow, and end: zed, jetbrains, neovim, "
        "avante, emacs or toad",
    )


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow acp``: the client is greeted before the agent is built."""
    if options.print_config is not None:
        return print_config(options.print_config, out)
    if options.login:
        from crow.cli.login import ask_and_store

        return ask_and_store(None, options, out)
    if options.proxy:
        return proxy(options, out)
    if options.command:
        raise UsageError(f"{options.command[0]!r} is no option; an agent's command is for --proxy")
    if options.listen is not None:
        from crow.cli.acp_listen import listen

        return listen(options, lambda: build(options, out), offer_of(options), out)
    if (options.token, options.token_file, options.node_url) != (None, None, None):
        raise UsageError(
            "--token, --token-file and --node-url are for --listen (see crow acp --help)"
        )
    from crow.acp import serve_stdio

    return serve_stdio(lambda: build(options, out), offer_of(options))


def offer_of(options: argparse.Namespace) -> AgentCapabilities:
    """What the agent can do, as far as that is known before its settings are read."""
    import os

    from crow.acp.initialize import AgentCapabilities
    from crow.cli.installation import installed_command

    known: dict[str, Any] = {
        "store": True,
        "mcp": True,
        "archive": True,
        "prompted": True,
        "providers": True,
        "login": [*installed_command(), "login"],
        "latest": options.protocol,
        "ask_timeout": options.ask_timeout,
    }
    model = options.model or os.environ.get("CROW_MODEL")
    if not model:
        return AgentCapabilities(**known)
    from crow.llm.model_names import info_named

    taken = info_named(model).inputs
    return AgentCapabilities(**known, image="image" in taken, audio="audio" in taken)


def print_config(name: str, out: Output) -> int:
    """The snippet on standard output, where it belongs on standard error."""
    from crow.cli.editors import EDITORS, snippet
    from crow.cli.installation import installed_command

    if name not in EDITORS:
        raise UsageError(f"{no_such('editor', name, EDITORS)} ({', '.join(EDITORS)})")
    out.verbatim(snippet(name, installed_command()))
    out.note(f"for {EDITORS[name].name}: put this into {EDITORS[name].where}")
    return 0


def proxy(options: argparse.Namespace, out: Output) -> int:
    """Stand in front of another agent. What is for Crow's own work alone is left out."""
    if options.listen is not None:
        raise UsageError("--proxy and --listen exclude each other (see crow acp --help)")
    from crow.acp.proxy import GUARDS, serve_proxy
    from crow.entry_points import entry_points

    own = (point.name for point in entry_points() if point.own)
    options.disable = [name for name in own if name not in GUARDS]
    return serve_proxy(lambda: build(options, out), options.command)


def build(options: argparse.Namespace, out: Output) -> Agent:
    """The agent, with complaints on standard error, which editors keep as a log.

    Each session tells its user what there is to complain of in its own project.
    """
    from crow.app import startup_warnings
    from crow.cli.options import agent_of, refuse_unread, settings_of

    settings = settings_of(options)
    if options.proxy:
        refuse_unread(settings)
    agent = agent_of(options, settings)
    for text in startup_warnings(settings, agent):
        out.error(text)
    return agent
