"""Judging calls that are given as JSON Lines, one decision a line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from crow.extensions.permissions.decision import Decision
from crow.extensions.permissions.paths.disk import LocalDisk
from crow.extensions.permissions.permissions import Permissions
from crow.extensions.permissions.rules.rule import SHAPE, tool_name
from crow.extensions.permissions.settings import RuleText
from crow.extensions.permissions.shell.shfmt import SecondOpinion

Json = dict[str, Any]
PLACEHOLDER = re.compile(r"(?<!\$)\{(CWD|HOME|TMP)\}")
LETS_THROUGH = frozenset({"allow", "approve", None})  # of hooks, which count once there is trust
REQUIRED = ("tool", "input", "cwd")
PRIMARY = {
    "Bash": "command",
    "WebFetch": "url",
    "NotebookEdit": "notebook_path",
    "Skill": "skill",
    "Agent": "subagent_type",
    "Glob": "pattern",
    "Grep": "pattern",
}


def check_lines(lines: Iterable[str]) -> Iterator[str]:
    """Judge cases, each a JSON object on its own line; a broken line gives an ``error``.

    A case has ``tool``, ``input``, ``cwd`` and may have ``rules``, ``mode``, ``hook``,
    ``trusted``, ``rules_origin``, ``project_settings``, ``additional_directories`` and ``setup``.
    Where its paths have the placeholders ``{CWD} {HOME} {TMP}``, ``setup`` is made in a new
    directory for them.
    """
    second = SecondOpinion()
    for line in lines:
        if line.strip():
            yield json.dumps(_check_line(line, second), ensure_ascii=False)


def _check_line(line: str, second: SecondOpinion) -> Json:
    try:
        case = json.loads(line)
    except ValueError as error:
        return {"id": None, "error": f"the line is no JSON: {error}"}
    if not isinstance(case, dict):
        return {"id": None, "error": "the line is not a JSON object"}
    case = cast("Json", case)
    about = {"id": case.get("id")}
    if missing := [name for name in REQUIRED if name not in case]:
        return about | {"error": f"the case has no {', '.join(missing)}"}
    try:
        return check_case(case, second)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return about | {"error": f"the line is no case: {error!r}"}


def check_case(case: Json, second: SecondOpinion | None = None) -> Json:
    """Judge one case: its ``id``, ``decision``, ``reason`` and ``rule``."""
    second = second or SecondOpinion()
    asked = {key: value for key, value in case.items() if key != "setup"}
    if PLACEHOLDER.search(json.dumps(asked)) is None:
        decision = decide(case, second)
    else:
        with tempfile.TemporaryDirectory() as made:
            decision = decide(settle(case, Path(made).resolve()), second)
    return {
        "id": case.get("id"),
        "decision": decision.decision,
        "reason": decision.reason,
        "rule": decision.rule,
    }


def settle(case: Json, made: Path) -> Json:
    """The case with its placeholders replaced, and its files made below a directory."""
    places = {"CWD": made / "work", "HOME": made / "home", "TMP": made / "tmp"}
    for one in places.values():
        one.mkdir()

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return PLACEHOLDER.sub(lambda match: str(places[match[1]]), value)
        if isinstance(value, list):
            return [filled(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return value

    settled: Json = filled(case)
    settled.setdefault("home", str(places["HOME"]))
    for step in settled.get("setup", ()):
        _make(step, places["CWD"], made)
    return settled


def _make(step: Json, cwd: Path, made: Path) -> None:
    named = step.get("file") or step.get("dir") or next(iter(step.get("symlink", ())), "")
    if not (cwd / named).is_relative_to(made) or ".." in Path(named).parts:
        raise ValueError(f"{named} is no place for a case's file")
    if "file" in step:
        path = cwd / step["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.get("text", ""))
        if "mode" in step:
            path.chmod(int(step["mode"], 8))
    elif "dir" in step:
        (cwd / step["dir"]).mkdir(parents=True, exist_ok=True)
    elif "symlink" in step:
        link, target = step["symlink"]
        (cwd / link).parent.mkdir(parents=True, exist_ok=True)
        (cwd / link).symlink_to(target)
    elif "hardlink" in step:
        name, existing = step["hardlink"]
        (cwd / name).hardlink_to(cwd / existing)
    elif step.get("git"):
        _make_repository(cwd)


def _make_repository(cwd: Path) -> None:
    git = shutil.which("git")
    if git:
        subprocess.run([git, "init", "--quiet", str(cwd)], check=False, capture_output=True)
    (cwd / ".git" / "hooks").mkdir(parents=True, exist_ok=True)


def decide(case: Mapping[str, Any], second: SecondOpinion) -> Decision:
    """The decision on a case whose files exist."""
    permissions = permissions_of(case, second)
    tool, args, cwd = case["tool"], dict(case["input"]), case["cwd"]
    given: Any = case.get("hook") or []
    hooks: list[Json] = [given] if isinstance(given, dict) else given
    if not case.get("trusted", True):
        hooks = [hook for hook in hooks if said_by(hook) not in LETS_THROUGH]
    for hook in hooks:
        if isinstance(hook.get("updatedInput"), dict):
            args = hook["updatedInput"]
    mcp: Any = case.get("mcp") or {}
    meta: Any = mcp.get("_meta") or {}
    interactive = bool(meta.get("anthropic/requiresUserInteraction"))
    decision = permissions.judge(tool, args, cwd=cwd, interactive=interactive)
    for hook in hooks:
        decision = joined(decision, hook, permissions.mode)
    return decision


def said_by(hook: Mapping[str, Any]) -> Any:
    """What a hook says; exit status 2 is a denial, whatever it prints."""
    said, code = hook.get("decision"), hook.get("exit_code", hook.get("exit"))
    if code == 2:
        return "deny"
    return f"exit status {code}" if said is None and code else said


def joined(decision: Decision, hook: Mapping[str, Any], mode: str) -> Decision:
    """A decision and what a hook said: the stricter stands, an allow skips the question only."""
    said, reason = said_by(hook), str(hook.get("reason") or "a hook decided so")
    if decision.decision == "deny" and not decision.default:
        return decision
    match said:
        case "allow" | "approve":
            return Decision("allow", reason) if decision.default else decision
        case "deny" | "block":
            return Decision("deny", reason)
        case "ask":
            if decision.decision != "allow" and not decision.default:
                return decision
            return Decision("deny" if mode == "dontAsk" else "ask", reason)
        case None | "none" | "passthrough" | "defer" | "":
            return decision
        case _:
            return Decision("deny", f"a hook could not decide ({said})")


def permissions_of(case: Mapping[str, Any], second: SecondOpinion) -> Permissions:
    """The permissions that a case describes; an untrusted project gives no more than refusals."""
    rules: dict[str, list[RuleText | str]] = {
        key: list(case.get("rules", {}).get(key) or ()) for key in ("allow", "ask", "deny")
    }
    trusted = case.get("trusted", True)
    mode: str = case.get("mode") or "default"
    if not trusted and case.get("rules_origin") == "project":
        rules["allow"] = []
    project: Any = case.get("project_settings") or {}
    settings: Any = project.get("permissions") or {}
    source = str(case["cwd"])
    for key in ("allow", "ask", "deny") if trusted else ("ask", "deny"):
        rules[key] += [RuleText(text, "project", source) for text in settings.get(key) or ()]
    given = trusted or case.get("rules_origin", "project") != "project"
    directories: list[str] = list(case.get("additional_directories") or ()) if given else []
    if trusted:
        directories += settings.get("additionalDirectories") or ()
        wanted = settings.get("defaultMode")
        mode = wanted if wanted and wanted != "bypassPermissions" and mode == "default" else mode
    return Permissions.of(
        **rules,
        mode=mode,
        directories=tuple(directories),
        disk=LocalDisk(case.get("home", "")),
        second=second,
    )


def parse_call(text: str) -> tuple[str, Json]:
    """A call as a tool and its arguments: ``Bash(rm -rf build)``, or all of them as an object.

    Raises ValueError for anything else.
    """
    match = SHAPE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not written Tool(argument)")
    name, given = tool_name(match[1]), match[2] or ""
    with suppress(ValueError):
        table: object = json.loads(given)
        if isinstance(table, dict):
            return name, cast("Json", table)
    return name, {PRIMARY.get(name, "file_path"): given}
