"""The command line. `main` imports only what the sub-command needs.

A command of an extension is an entry point of the group ``crow.commands``: a module with
``declare(parser)``, which is given an ``ArgumentParser``, and ``main(options, out)``, which returns
the exit status; its docstring is the help.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any

from crow._version import __version__
from crow.cli.claude_options import is_print, prompt_meant
from crow.cli.options import declare_agent, load_agent
from crow.cli.output import Output, hold
from crow.cli.parser import COMMANDS, SAME, Help, Parser, UsageError, overview
from crow.core.errors import CrowError
from crow.project.home import settle_home

__all__ = ["Output", "UsageError", "declare_agent", "load_agent"]

DONE, FAILED, MISUSED, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141
MODULES = {"import": "migration"}
"""Of sub-commands whose name no module can have."""
LATE = (100_000, 1, 2)
"""When garbage is collected: not during a start, whose objects all stay (80,000 of them)."""


def main(argv: list[str] | None = None) -> int:
    """Run a command line; the exit status: 0 done, 1 error, 2 usage, 130 interrupted."""
    gc.set_threshold(*LATE)
    hold()
    settle_home()
    out = Output()
    try:
        status = dispatch(sys.argv[1:] if argv is None else argv, out)
    except Help as wanted:
        out.line(str(wanted))
        status = DONE
    except UsageError as error:
        status = complain(out, error, MISUSED)
    except CrowError as error:
        status = complain(out, error, FAILED)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a face shows people no traceback
        told = f"{type(error).__name__}: {error} (CROW_DEBUG=1 shows where)"
        status = complain(out, error, FAILED, told)
    out.flush()
    if out.loss:
        return status or FAILED
    return UNREAD if out.gone else status


def complain(out: Output, error: Exception, status: int, text: str = "") -> int:
    """Say what went wrong, with a traceback only where somebody asked for it."""
    if os.environ.get("CROW_DEBUG"):
        import traceback

        traceback.print_exception(error)
    out.error(text or str(error))
    return status


def dispatch(argv: list[str], out: Output) -> int:
    """Run one sub-command."""
    if not argv or argv[0].startswith("-") or prompt_meant(argv):
        return without_command(argv, out)
    name, *rest = argv
    name = SAME.get(name, name)
    if name == "help":
        return dispatch([*rest[:1], "--help"], out)
    return start(name, Parser(prog=f"crow {name}"), rest, out)


def without_command(argv: list[str], out: Output) -> int:
    """``crow`` to talk, where a person is there; ``crow --help``, ``crow --version``."""
    from crow.cli.stdin import somebody_is_there

    if is_print(argv) or (prompt_meant(argv) and not out.is_terminal):
        return start("run", Parser(prog="crow run"), argv, out)
    if not {"-h", "--help", "-v", "--version"} & set(argv):
        if somebody_is_there() and out.is_terminal:
            return start("chat", Parser(prog="crow", usage="crow [options]"), argv, out)
        if not argv:
            out.write(overview_of_all().format_help())
            out.error('to talk takes a terminal; crow run "..." answers one prompt')
            return MISUSED
        if is_for_run(argv[0]):
            return start("run", Parser(prog="crow run"), argv, out)
    parser = overview() if {"-v", "--version"} & set(argv) else overview_of_all()
    options = parser.understand(argv)
    out.line(f"crow {__version__}" if options.version else parser.format_help())
    return DONE


def is_for_run(word: str) -> bool:
    """True for an option with which a session begins, or begins elsewhere."""
    from crow.cli.migration_hints import flag

    parser, name = Parser(), word.partition("=")[0]
    imported("run").declare(parser)
    return name in parser.names or flag(name) is not None


def overview_of_all() -> Parser:
    """The parser of ``crow`` without a sub-command, for somebody who reads what there is."""
    from crow.cli.extension_commands import left_out, summaries

    return overview(summaries(), left_out())


def start(name: str, parser: Parser, argv: list[str], out: Output) -> int:
    """Import a sub-command and run it."""
    command = imported(name)
    parser.description = command.__doc__
    command.declare(parser)
    options = parser.understand(argv)
    for note in parser.notes:
        out.note(note)
    return command.main(options, out)


def imported(name: str) -> Any:
    """The module of a sub-command. Raises `UsageError` where there is none of this name."""
    if name in (*COMMANDS, "chat"):
        return import_module(f"crow.cli.{MODULES.get(name, name)}")
    from crow.cli.extension_commands import command_of

    return command_of(name)
