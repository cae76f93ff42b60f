"""Speak the Agent Client Protocol on standard input and output, for editors."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from crow.cli.output import Output
from crow.cli.parser import Parser

if TYPE_CHECKING:
    from crow.core.agent import Agent


def declare(parser: Parser) -> None:
    """The options of ``crow acp``."""
    from crow.cli.options import declare_agent

    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow acp``: the client is greeted before the agent is built."""
    from crow.acp import serve_stdio

    serve_stdio(lambda: build(options, out))
    return 0


def build(options: argparse.Namespace, out: Output) -> Agent:
    """The agent, with complaints on standard error, which editors keep as a log."""
    import os

    from crow.cli.options import agent_of, settings_of, tell_problems

    settings = settings_of(options)
    os.environ.update(settings.env)
    agent = agent_of(options, settings)
    tell_problems(settings, agent, out)
    return agent
