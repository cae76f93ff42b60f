"""What becomes of a call, by which rules, and taking a rule back.

  crow permissions check 'Bash(rm -rf build)'   in the current project, by its rules and hooks
  crow permissions check 'mcp__x__y({"a": 1})'  the same with all arguments
  crow permissions check < cases.jsonl          one case a line, one decision a line
  crow permissions list                         the rules that hold here, and where they stand
  crow permissions revoke 'Bash(make *)'        take back what was answered with always

A case is a JSON object with tool, input, cwd, and rules (lists allow, ask and deny).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crow import Allow, Ask, Deny, Stop
from crow.cli import Output, UsageError, declare_agent, load_agent
from crow.dataclasses import frozen
from crow.ports import HandlerProvider, implements

if TYPE_CHECKING:
    from crow import Agent
    from crow.extensions.permissions.hook import PermissionsHook
    from crow.hooks import Record

CHECKED = "check"
COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def declare(parser: argparse.ArgumentParser) -> None:
    """The options of ``crow permissions``."""
    parser.add_argument("action", metavar="ACTION", help="check, list or revoke")
    parser.add_argument("call", metavar="CALL", nargs="?", help="or a rule: 'Bash(rm -rf build)'")
    parser.add_argument("--json", action="store_true", help="as JSON, one object a line")
    declare_agent(parser)


def main(options: argparse.Namespace, out: Output) -> int:
    """Run ``crow permissions``."""
    if options.action in ("list", "revoke"):
        return (show_rules if options.action == "list" else revoke_rule)(options, out)
    if options.action != "check":
        actions = "check, list or revoke"
        raise UsageError(f"there is no action {options.action!r} (crow permissions {actions})")
    if options.call is not None:
        return check_call(options, out)
    if sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("which call? crow permissions check 'Bash(rm -rf build)'")
    return check_cases(out)


def show_rules(options: argparse.Namespace, out: Output) -> int:
    """List the rules that hold in this project."""
    from crow.extensions.permissions.overview import rows_of

    rows = rows_of(permissions_of(load_agent(options, out)), {})
    for row in rows:
        if options.json:
            out.verbatim(json.dumps(row.as_dict(), ensure_ascii=False))
        else:
            word = out.styled(f"{row.behaviour:5}", COLOURS[row.behaviour])  # pyright: ignore[reportArgumentType]
            out.raw(f"{word}  {out.fit(row.rule, 7)}\n       {out.styled(row.source, 'dim')}")
    if not rows:
        out.note("no rules hold here: what only reads runs unasked, the rest is asked about")
    return 0


def revoke_rule(options: argparse.Namespace, out: Output) -> int:
    """Take a rule out of the file in which answers are kept."""
    from crow.extensions.permissions.overview import revoke, rows_of

    hook = permissions_of(load_agent(options, out))
    if not options.call:
        raise UsageError("which rule? crow permissions list names them")
    known = options.call in [row.rule for row in rows_of(hook, {})]
    said = revoke(hook, {}, options.call)
    if not known:
        raise UsageError(f"{said} crow permissions list names them")
    out.line(said)
    return 0


def permissions_of(agent: Agent) -> PermissionsHook:
    """The judge of an agent; one without rules where it has none."""
    from crow.extensions.permissions.hook import PermissionsHook

    used = agent.extensions.values()
    return next((each for each in used if isinstance(each, PermissionsHook)), PermissionsHook())


def check_cases(out: Output) -> int:
    """Judge the cases of standard input."""
    from crow.extensions.permissions.check import check_lines

    for line in check_lines(sys.stdin):
        out.verbatim(line)
    return 0


def check_call(options: argparse.Namespace, out: Output) -> int:
    """Judge one call as this project's agent would: by its hooks and by its rules."""
    from crow.extensions.permissions.check import parse_call

    try:
        tool, args = parse_call(options.call)
    except ValueError as error:
        raise UsageError(f"{error}, for instance 'Bash(rm -rf build)'") from None
    agent = load_agent(options, out)
    cwd = str(Path(os.path.expanduser(options.cwd)).absolute())
    found = asyncio.run(judged(agent, tool, args, cwd))
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
    for source in found.sources:
        out.line(f"  {found.rule}  from {source}", "dim")
    return 0


@frozen
class Judged:
    """A decision, and who made it: a ``hook``, or a ``rule`` that stands in ``sources``.

    ``args`` are what hooks made of the arguments.
    """

    decision: str
    reason: str
    rule: str | None = None
    sources: tuple[str, ...] = ()
    hook: str | None = None
    args: Mapping[str, Any] | None = None


async def judged(agent: Agent, tool: str, args: dict[str, Any], cwd: str) -> Judged:
    """Ask all that is asked before a tool runs; nothing runs but the hooks themselves."""
    from crow import Call, RunContext, Session, ToolContext
    from crow.extensions.permissions.hook import PermissionsHook
    from crow.extensions.permissions.hook import judged as by_rules

    session = Session(cwd=cwd)
    session.belong(agent)
    used = agent.extensions_of(session).items()
    [name, rules] = next(
        (each for each in used if isinstance(each[1], PermissionsHook)), ("", PermissionsHook())
    )
    session.mode = rules.mode
    run = RunContext(agent, session, "")
    call = ToolContext(run, Call(CHECKED, tool, args), agent.tool(tool, session))
    call.args = call.prepared()
    before = dict(call.args)
    verdict = (await agent.hooks.before_tool.fire(call)).verdict
    changed = None if call.args == before else call.args
    record = next((one for one in session.trace.of_call(CHECKED) if one.answer == verdict), None)
    if verdict is None:
        return Judged("allow", "nobody judges it: the extension permissions is not in use")
    if record is None or record.owner == name:
        call.owner = name
        made = by_rules(rules.of_session(call), call)
        sources = rules.sources_of(made.rule)
        return Judged(made.decision, made.reason, made.rule, sources, args=changed)
    hook = hook_decision(agent, record, tool)
    return Judged(decision_of(verdict), verdict.reason, hook=hook, args=changed)


def decision_of(verdict: Allow | Ask | Deny | Stop) -> str:
    """A verdict as rules call it."""
    return "ask" if isinstance(verdict, Ask) else "allow" if isinstance(verdict, Allow) else "deny"


def hook_decision(agent: Agent, record: Record, tool: str) -> str:
    """A hook that decided; where it runs handlers, those that it may have been."""
    hooks = agent.extensions.get(record.owner)
    chosen = hooks.chosen("PreToolUse", tool) if implements(hooks, HandlerProvider) else ()
    named = [f"{each} from {each.source}" for each in chosen]
    if named:
        return f"by a hook: {'; '.join(named)}"
    return f"by the hook {record.owner}: {record.hook}"
