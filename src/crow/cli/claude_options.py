"""The options of Claude Code, by the names that people know them by."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crow.cli.parser import UsageError
from crow.core.verdicts import Deny

if TYPE_CHECKING:
    from crow.core.agent import Agent
    from crow.core.hooks.contexts import ToolContext, TurnContext
    from crow.core.session import Session

NAMES = r"[^\s,()]+(?:\([^)]*\))?"
"""One of several tools or rules in a text: a rule's own blanks and commas are in parentheses."""
LAYERS = ("user", "project", "local")
ALL_TOOLS = "default"
ANSWER = "StructuredOutput"
"""The tool by which a model answers what ``--json-schema`` wants."""


def declare_habits(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the agent may do and is told."""
    add = parser.add_argument
    for option, text in (("--allowedTools", "like --allow"), ("--disallowedTools", "like --deny")):
        names = (option, f"--{option[2:-5]}-tools")
        told = f"{text}, several: 'Bash(git log *),Edit'"
        add(*names, metavar="RULE", nargs="+", action="extend", default=[], help=told)
    add("--tools", metavar="NAME", nargs="+", help="lend the model these built-in tools alone")
    add(
        "--dangerously-skip-permissions",
        dest="mode",
        action="store_const",
        const="bypassPermissions",
        help="ask about nothing (--mode bypassPermissions)",
    )
    add(
        "--allow-dangerously-skip-permissions",
        action="store_true",
        help="permits nothing by itself",
    )
    add("--add-dir", metavar="DIR", nargs="+", action="extend", default=[], help="work there, too")
    add("--mcp-config", metavar="FILE", nargs="+", action="extend", default=[], help=MCP)
    add("--strict-mcp-config", action="store_true", help="no other MCP servers than these")
    add("--agent", metavar="NAME", help="run as this agent: its prompt, tools, model and mode")
    add("--output-style", metavar="NAME", help="how it talks: Explanatory, Learning, or yours")
    add("--agents", metavar="JSON", help="sub-agents by name; a file as @FILE")
    for start, text in (("--", "what the model is told first"), ("--append-", "... as well")):
        either = parser.add_mutually_exclusive_group()
        either.add_argument(f"{start}system-prompt", metavar="TEXT", help=text)
        either.add_argument(f"{start}system-prompt-file", metavar="FILE", help="from a file")
    add("--max-turns", metavar="N", type=int, help="requests in one run, at most")
    add("--max-budget-usd", metavar="USD", type=float, help="dollars in one run, at most")
    add("--fallback-model", metavar="NAME,...", help="ask these where a model cannot be had")
    add("--json-schema", metavar="SCHEMA", help="answer JSON that fits; a file as @FILE")
    add("--effort", metavar="LEVEL", help="how hard the model is to think")
    add("--setting-sources", metavar="LAYER,...", help=f"of {', '.join(LAYERS)}; '' is none")
    add("--plugin-dir", metavar="DIR", action="append", default=[], help="use a plugin")
    add("--disable-slash-commands", action="store_true", help="no commands and no skills")
    add("--no-session-persistence", action="store_true", help="keep nothing of the session")


BYPASS = "bypassPermissions"
GREEDY = ("--allowedTools", "--disallowedTools", "--tools", "--add-dir", "--mcp-config")
"""The options that take all words up to the next one."""
SWITCHES = {
    "disable_slash_commands": ("commands", "skills"),
    "no_session_persistence": ("persistence",),
}
"""What is switched off by options: extensions, by the options' names."""
MCP = "MCP servers, as a file like .mcp.json or as JSON"


def flags_of(options: argparse.Namespace) -> dict[str, Any]:
    """What these options say, in the shape of a settings file."""
    flags: dict[str, Any] = {}
    if extensions := dict(_extensions(options)):
        flags["extensions"] = extensions
    if options.effort:
        flags["params"] = {"reasoning_effort": options.effort}
    if options.plugin_dir:
        flags["plugins"] = [os.path.abspath(each) for each in options.plugin_dir]  # noqa: PTH100
    if servers := {name: it for name, it in servers_of(options).items() if it.get("type") != "sdk"}:
        flags["mcpServers"] = servers
    return flags


def switched_off(options: argparse.Namespace) -> Iterator[str]:
    """The extensions that these options switch off."""
    for option, names in SWITCHES.items():
        if getattr(options, option, False):
            yield from names


def _extensions(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """What these options say of extensions: the name of each, and its options."""
    limits = {"turns": options.max_turns, "cost": options.max_budget_usd}
    if wanted := {name: value for name, value in limits.items() if value is not None}:
        yield "limits", wanted
    if options.fallback_model:
        yield "fallback", {"models": names_of(options.fallback_model)}
    if options.json_schema:
        yield "structured_output", {"schema": table_of("--json-schema", options.json_schema)}
    if options.strict_mcp_config:
        yield "mcp", {"only": [*servers_of(options)]}
    table = table_of("--agents", options.agents) if options.agents else None
    agents = {"main": options.agent, "agents": table}
    if options.output_style:
        yield "output_styles", {"style": options.output_style}
    if given := {name: value for name, value in agents.items() if value}:
        yield "subagents", given


def names_of(text: str) -> list[str]:
    """The models of ``--fallback-model``."""
    return [name for name in map(str.strip, text.split(",")) if name]


def table_of(option: str, text: str) -> dict[str, Any]:
    """The object that an option takes, as JSON or as a file. Raises `UsageError`."""
    name = os.path.expanduser(text.removeprefix("@"))
    is_file = text.startswith("@") or ("{" not in text and Path(name).is_file())
    try:
        table: Any = json.loads(Path(name).read_text("utf-8") if is_file else text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} takes JSON, or @FILE: {error}") from None
    if not isinstance(table, dict):
        raise UsageError(f"{option} takes a JSON object")
    return cast("dict[str, Any]", table)


def refuse_unusable(options: argparse.Namespace, agent: Agent) -> None:
    """Raise for what cannot be had and a schema that is none, before anything begins."""
    from crow.core.errors import ExtensionError
    from crow.core.ports.llm import model_named

    for name in names_of(options.fallback_model) if options.fallback_model else ():
        model_named(agent.llm, name)
    if options.agent:
        knows: Any = agent.extensions.get("subagents")
        if knows is None:
            raise ExtensionError("--agent: the extension subagents is switched off")
        knows.check_agent(options.agent)
    if options.json_schema:
        for found in agent.found:
            if found.name == "structured_output" and found.error:
                raise ExtensionError(f"--json-schema: {found.error}")


def swallower(options: argparse.Namespace) -> str:
    """The option that has taken several words, the prompt perhaps among them; empty for none."""
    taken = {each: getattr(options, each[2:].replace("-", "_")) for each in GREEDY}
    return next((each for each, words in taken.items() if len(words or ()) > 1), "")


def names_in(texts: Sequence[str]) -> list[str]:
    """The tools or rules that are named, each by itself."""
    return [name for text in texts for name in re.findall(NAMES, text)]


def layers_of(options: argparse.Namespace) -> frozenset[str] | None:
    """The settings files that count, None for all. Raises `UsageError`."""
    if options.setting_sources is None:
        return None
    written: str = options.setting_sources
    layers = frozenset(filter(None, written.split(",")))
    if unknown := layers - {*LAYERS}:
        raise UsageError(f"--setting-sources takes {', '.join(LAYERS)}, not {min(unknown)!r}")
    return layers


def servers_of(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The servers of ``--mcp-config``. Raises `UsageError`."""
    found: dict[str, dict[str, Any]] = {}
    for text in options.mcp_config:
        try:
            given = text if text.lstrip().startswith("{") else Path(text).read_text("utf-8")
            servers: Any = json.loads(given)["mcpServers"]
            found |= {str(name): dict(each) for name, each in servers.items()}
        except OSError as error:
            raise UsageError(f"--mcp-config {text}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(f"--mcp-config needs a table 'mcpServers': {text}") from None
    return found


def directories_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The directories of ``--add-dir``, absolute. Raises `UsageError`."""
    for path in options.add_dir:
        if not Path(os.path.expanduser(path)).is_dir():
            raise UsageError(f"there is no directory {path!r}: --add-dir takes one that exists")
    return tuple(os.path.abspath(os.path.expanduser(each)) for each in options.add_dir)  # noqa: PTH100


def settle_session(options: argparse.Namespace, session: Session) -> None:
    """Tell a session what the options say of it."""
    from crow.keys import CLIENT_PROMPT

    first, more = text_of(options, "system_prompt"), text_of(options, "append_system_prompt")
    if first is not None:
        CLIENT_PROMPT.set(session, ("override", "\n\n".join(filter(None, (first, more)))))
    elif more:
        CLIENT_PROMPT.set(session, ("append", more))
    if options.name:
        session.title = options.name
    if options.model:
        session.model = None
    if options.mode not in (None, BYPASS):  # that one is confined where a session begins
        session.mode = options.mode


def text_of(options: argparse.Namespace, name: str) -> str | None:
    """The text of an option that a file can have as well. Raises `UsageError`."""
    path: str | None = getattr(options, f"{name}_file")
    if path is None:
        return getattr(options, name)
    try:
        return Path(os.path.expanduser(path)).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"--{name.replace('_', '-')}-file {path}: {error}") from None


def choose_tools(options: argparse.Namespace, agent: Agent) -> None:
    """Leave the model the tools of ``--tools`` alone, and those of servers."""
    if options.tools is None or options.tools == [ALL_TOOLS]:
        return
    agent.use(Chosen(frozenset(names_in(options.tools)), frozenset(agent.tools)))


class Chosen:
    """Lends the model some of the ``known`` tools; those that come later are there anyway."""

    name = "tools"

    def __init__(self, wanted: frozenset[str], known: frozenset[str]) -> None:
        self.hidden = known - wanted - {ANSWER}

    def hides(self, name: str, tool: object) -> bool:
        """True for a tool that the model is not lent."""
        del tool
        return name in self.hidden

    def before_llm_request(self, ctx: TurnContext) -> None:
        """Leave out what is hidden."""
        ctx.tools = [each for each in ctx.tools if each["function"]["name"] not in self.hidden]

    def before_tool(self, ctx: ToolContext) -> Deny | None:
        """Refuse what is hidden."""
        return Deny(f"{ctx.name} is not in use here") if ctx.name in self.hidden else None


def prompt_meant(argv: Sequence[str]) -> bool:
    """True for a word that is no command but what is to be done: ``crow "fix it"``."""
    return bool(argv) and any(character.isspace() for character in argv[0].strip())


def is_print(argv: Sequence[str]) -> bool:
    """True for options that want one answer and no talk."""
    names = {each.partition("=")[0] for each in argv}
    return not names.isdisjoint({"-p", "--print", "--output-format", "--input-format"})


def sdk_servers(options: argparse.Namespace) -> list[str]:
    """The servers that the program has which drives Crow."""
    return [name for name, each in servers_of(options).items() if each.get("type") == "sdk"]


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two tables as one, with the tables in them."""
    joined = dict(one)
    for name, value in other.items():
        known = joined.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            joined[name] = merged(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        else:
            joined[name] = value
    return joined
