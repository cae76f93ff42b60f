"""Remove API keys that `crow login` stored: of one provider, or all of them."""

from __future__ import annotations

import argparse

from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.llm.credentials import forget, providers


def declare(parser: Parser) -> None:
    """The options of ``crow logout``."""
    parser.add_argument("provider", metavar="PROVIDER", nargs="?", help="all where none is named")


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow logout``."""
    stored = providers()
    if options.provider is not None and options.provider not in stored:
        raise UsageError(f"{no_such('stored key for', options.provider, stored)}")
    named = [options.provider] if options.provider else stored
    for provider in named:
        forget(provider)
        out.line(f"the key for {provider} is removed")
    if not named:
        out.line("no key is stored")
    return 0
