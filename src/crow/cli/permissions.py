"""What becomes of a call, and which rule or hook decides that.

  crow permissions check 'Bash(rm -rf build)'   in the current project, by its rules and hooks
  crow permissions check 'mcp__x__y({"a": 1})'  the same with all arguments
  crow permissions check < cases.jsonl          one case a line, one decision a line

A case is a JSON object with tool, input, cwd, and rules (lists allow, ask and deny).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crow.cli.ask import somebody_is_there
from crow.cli.handlers import SETTINGS_HOOKS
from crow.cli.options import agent_of, declare_agent, directory, settings_of
from crow.cli.output import Output
from crow.cli.parser import Parser, UsageError, no_such
from crow.core.agent import Agent
from crow.core.frozen import frozen
from crow.core.verdicts import Allow, Ask, Deny, Stop

if TYPE_CHECKING:
    from crow.core.trace import Record
    from crow.settings import Settings

CHECKED = "check"
COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def declare(parser: Parser) -> None:
    """The options of ``crow permissions``."""
    parser.add_argument("action", metavar="ACTION", help="check")
    parser.add_argument("call", metavar="CALL", nargs="?", help="such as 'Bash(rm -rf build)'")
    parser.add_argument("--json", action="store_true", help="the decision as a JSON object")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow permissions``."""
    if options.action != "check":
        raise UsageError(f"{no_such('action', options.action, ['check'])} (crow permissions check)")
    if options.call is None and somebody_is_there():
        raise UsageError("which call? crow permissions check 'Bash(rm -rf build)'")
    if options.call is None:
        return check_cases(out)
    return check_call(options, out)


def check_cases(out: Output) -> int:
    """Judge the cases of standard input."""
    from crow.extensions.permissions.check import check_lines

    for line in check_lines(sys.stdin):
        out.verbatim(line)
    return 0


def check_call(options: argparse.Namespace, out: Output) -> int:
    """Judge one call as this project's agent would: by its hooks and by its rules."""
    from crow.app import complaints
    from crow.extensions.permissions.check import parse_call

    try:
        tool, args = parse_call(options.call)
    except ValueError as error:
        raise UsageError(f"{error}, for instance 'Bash(rm -rf build)'") from None
    settings = settings_of(options)
    agent = agent_of(options, settings)
    for line in complaints(settings, agent):
        out.error(line)
    found = asyncio.run(judged(agent, tool, args, str(directory(options))))
    if options.json:
        about = {"decision": found.decision, "reason": found.reason, "rule": found.rule}
        about |= {"hook": found.hook} if found.hook else {}
        about |= {"input": found.args} if found.args is not None else {}
        out.verbatim(json.dumps(about, ensure_ascii=False))
        return 0
    word = out.styled(found.decision, COLOURS[found.decision])  # pyright: ignore[reportArgumentType]
    out.raw(f"{word}  {out.fit(found.reason or 'no reason given', 7)}")
    if found.args is not None:
        out.line(f"  a hook made of it: {json.dumps(found.args, ensure_ascii=False)}", "dim")
    if found.hook:
        out.line(f"  {found.hook}", "dim")
    for source in sources_of(found.rule, settings):
        out.line(f"  {found.rule}  from {source}", "dim")
    return 0


@frozen
class Judged:
    """A decision, and who made it: a ``rule`` or a ``hook``. ``args`` are what hooks made of it."""

    decision: str
    reason: str
    rule: str | None = None
    hook: str | None = None
    args: Mapping[str, Any] | None = None


async def judged(agent: Agent, tool: str, args: dict[str, Any], cwd: str) -> Judged:
    """Ask all that is asked before a tool runs; nothing runs but the hooks themselves."""
    from crow.core.context import RunContext
    from crow.core.contexts import ToolContext
    from crow.core.session import Session
    from crow.core.tool_call import prepare
    from crow.core.tools import Call

    session = Session(cwd=cwd)
    session.belong(agent)
    session.mode = getattr(agent.extensions.get("permissions"), "mode", session.mode)
    call = ToolContext(
        RunContext(agent, session, ""),
        Call(CHECKED, tool, args),
        agent.tools_of(session).get(tool),
    )
    if call.tool is not None:
        prepare(call)
    before = dict(call.args)
    verdict = (await agent.hooks.before_tool.fire(call)).verdict
    changed = None if call.args == before else call.args
    record = next((one for one in session.trace.of_call(CHECKED) if one.answer == verdict), None)
    if verdict is None:
        return Judged("allow", "nobody judges it: the extension permissions is not in use")
    if record is None or record.owner == "permissions":
        call.owner = "permissions"
        rules: Any = agent.extensions_of(session)["permissions"]
        made = rules.of_session(call).judge(tool, call.args, cwd=cwd)
        return Judged(made.decision, made.reason, made.rule, None, changed)
    return Judged(decision_of(verdict), verdict.reason, None, told(agent, record, tool), changed)


def decision_of(verdict: Allow | Ask | Deny | Stop) -> str:
    """A verdict as rules call it."""
    return "ask" if isinstance(verdict, Ask) else "allow" if isinstance(verdict, Allow) else "deny"


def told(agent: Agent, record: Record, tool: str) -> str:
    """A hook that decided; of settings files, the handlers that it may have been."""
    name = f"{record.owner}: {record.hook}"
    hooks: Any = agent.extensions.get(record.owner)
    if record.owner != SETTINGS_HOOKS or hooks is None:
        return f"by the hook {name}"
    chosen = [f"{entry} from {entry.source}" for entry in hooks.chosen("PreToolUse", tool)]
    return f"by a hook: {'; '.join(chosen) or name}"


def sources_of(rule: str | None, settings: Settings) -> list[str]:
    """The files in which a rule stands."""
    lists = settings.permissions
    entries = (*lists.deny, *lists.ask, *lists.allow)
    return [str(entry.source) for entry in entries if entry.text == rule]
