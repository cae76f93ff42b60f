"""The tool names of other agents, and what rules and hooks call the same: tables, as data.

Facts from the sources of claude-agent-acp 0.49, codex-acp (Rust, and 1.x for Node) and Gemini CLI
0.61, and from what Qwen Code 0.24, opencode 1.18 and Kimi Code 2.1 say: none says a tool's name in
its question, so that is remembered from the call's updates (``name``,
``_meta.claudeCode.toolName``), or read from the arguments (``rawInput``), the changes that are
shown, and the kind. Kimi's question has no arguments either: it shows them before, as the text of
the call.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, cast

from crow.acp.jsonrpc import Message, as_object
from crow.core.support.frozen import frozen

NAMES: Mapping[str, str] = {
    # codex
    "shell": "Bash",
    "shell_command": "Bash",
    "local_shell": "Bash",
    "exec_command": "Bash",
    "exec": "Bash",
    "apply_patch": "Edit",
    "view_image": "Read",
    "web_search": "WebSearch",
    # gemini
    "run_shell_command": "Bash",
    "replace": "Edit",
    "write_file": "Write",
    "read_file": "Read",
    "read_many_files": "Read",
    "list_directory": "LS",
    "grep_search": "Grep",
    "google_web_search": "WebSearch",
    "web_fetch": "WebFetch",
    # Claude Code: its names are the rules' own
    "task": "Agent",
} | {
    name.lower(): name
    for name in (
        "Agent Bash BashOutput Edit Glob Grep KillShell LS MultiEdit NotebookEdit Read Skill "
        "TodoWrite WebFetch WebSearch Write"
    ).split()
}
"""Names of tools, in lower case."""
KINDS: Mapping[str, str] = {
    "execute": "Bash",
    "edit": "Edit",
    "delete": "Edit",
    "move": "Edit",
    "read": "Read",
    "search": "Grep",
    "fetch": "WebFetch",
}
"""What a call of each kind is, where nothing says its name."""
FILE_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Read", "Write"})
FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Bash": {
        "command": ("command", "cmd"),
        "cwd": ("cwd", "workdir", "dir_path"),
        "description": ("description",),
    },
    "WebFetch": {"url": ("url",)},
    "WebSearch": {"query": ("query",)},
    "Grep": {"pattern": ("pattern", "query"), "path": ("path", "dir_path")},
    "Glob": {"pattern": ("pattern",), "path": ("path", "dir_path")},
    "LS": {"path": ("path", "dir_path")},
}
"""The arguments of the rules' tools, each with the names that agents have for it."""
NEEDED: Mapping[str, str] = {
    "Bash": "command",
    "WebFetch": "url",
    "WebSearch": "query",
    "Grep": "pattern",
    "Glob": "pattern",
}
"""The argument without which nothing is known of a call."""
PATHS = ("file_path", "path", "absolute_path", "notebook_path", "abs_path")
WIDER = ("additional_permissions", "additionalPermissions", "network_approval_context",
         "networkApprovalContext", "grant_root", "grantRoot", "permissions")  # fmt: skip
"""Arguments with which a question is about more than the call."""
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})
UNKNOWN = "unknown"
SHOWN = "shownInput"
"""Where what `shown_input` has found is kept beside what an agent tells of a call."""
OTHER_KINDS = frozenset({*KINDS, "think", "switch_mode"})


@frozen
class ForeignCall:
    """A call of another agent's, as rules know it.

    ``is_sure``: all of it was said, and not only guessed. A guess can be refused, never allowed.
    """

    name: str
    args: Message
    is_sure: bool
    title: str = ""
    kind: str = "other"


def calls_of(told: Message) -> list[ForeignCall]:
    """What an agent tells of a tool call, as one call a file that it touches; at least one."""
    raw = as_object(told.get("rawInput"))
    shown = {} if raw else as_object(told.get(SHOWN))
    title, kind = str(told.get("title") or ""), str(told.get("kind") or "other")
    kind = kind if kind in OTHER_KINDS else "other"
    is_wider = bool(shown) or any(raw.get(name) for name in WIDER)
    return [
        ForeignCall(name, args, is_sure and not is_wider, title, kind)
        for name, args, is_sure in _read(told, raw or shown, title, kind)
    ]


def shown_input(told: Message) -> Message:
    """The arguments of an open call, where they are shown as a text alone; else empty."""
    parts = cast("list[object]", told.get("content") or [])
    if told.get("rawInput") or told.get("status") in ("completed", "failed") or len(parts) != 1:
        return {}
    text = as_object(as_object(parts[0]).get("content")).get("text")
    if not isinstance(text, str) or not text.startswith("{"):
        return {}
    try:
        return as_object(json.loads(text))
    except ValueError:
        return {}


def _read(
    told: Message, raw: Message, title: str, kind: str
) -> Iterator[tuple[str, Message, bool]]:
    invocation = as_object(raw.get("invocation")) or raw
    if isinstance(server := invocation.get("server"), str) and isinstance(
        tool := invocation.get("tool"), str
    ):
        yield f"mcp__{server}__{tool}", as_object(invocation.get("arguments")), True
        return
    said = said_name(told)
    if said.startswith("mcp__"):
        yield said, raw, True
        return
    is_known = not said or said.lower() in NAMES
    name = NAMES.get(said.lower()) or KINDS.get(kind, "")
    if not said and ("command" in raw or "cmd" in raw):
        name = "Bash"  # codex tells the kind of what a command seems to do
    if name in FILE_TOOLS:
        for each, args, is_sure in _of_files(name, told, raw):
            yield each, args, is_sure and is_known
    elif name:
        name, args, is_sure = _of_fields(name, raw, title)
        yield name, args, is_sure and is_known
    else:
        yield said or UNKNOWN, raw, False


def said_name(told: Message) -> str:
    """The name of the tool, as far as the agent says it; else empty."""
    claude = as_object(as_object(told.get("_meta")).get("claudeCode"))
    for name in (told.get("name"), claude.get("toolName")):
        if isinstance(name, str) and name:
            return name
    return ""


def _of_fields(name: str, raw: Message, title: str) -> tuple[str, Message, bool]:
    """A call by its arguments; of a command that is not given, the title is a guess."""
    args = dict(raw)
    for field, names in FIELDS.get(name, {}).items():
        found = next((raw[each] for each in names if raw.get(each)), None)
        if found is not None:
            args[field] = found
    if name == "Bash" and isinstance(args.get("command"), list):
        args["command"] = script_of([str(word) for word in cast("list[object]", args["command"])])
    needed = NEEDED.get(name)
    is_sure = bool(raw) if needed is None else isinstance(args.get(needed), str)
    if name == "Bash" and not is_sure:
        args["command"] = title
    return name, args, is_sure


def _of_files(name: str, told: Message, raw: Message) -> Iterator[tuple[str, Message, bool]]:
    """A call for each file; where no file is named, one that is not sure."""
    given = next((raw[each] for each in PATHS if isinstance(raw.get(each), str)), None)
    if given is not None:
        yield name, {**raw, "file_path": given}, True
    shown = dict.fromkeys((*_changed(raw), *_shown(told)), True)
    places = cast("list[object]", told.get("locations") or [])
    for place in places:
        path = as_object(place).get("path")
        if isinstance(path, str) and path:
            shown.setdefault(path, False)
    shown.pop(given or "", None)
    is_known = given is not None or any(shown.values())
    for path, is_sure in shown.items():
        yield name, {"file_path": path}, is_sure or is_known
    if given is None and not shown:
        yield name, raw, False


def _changed(raw: Message) -> Iterator[str]:
    """The files of a patch of codex's, and where they are moved to."""
    changes = raw.get("changes")
    if isinstance(changes, list):
        listed = cast("list[object]", changes)
        yield from (str(as_object(each)["path"]) for each in listed if as_object(each).get("path"))
        return
    for path, change in as_object(changes).items():
        yield path
        for how in (as_object(change), *map(as_object, as_object(change).values())):
            if isinstance(how.get("move_path"), str):
                yield how["move_path"]


def _shown(told: Message) -> Iterator[str]:
    """The files of which a change is shown."""
    for each in cast("list[object]", told.get("content") or []):
        part = as_object(each)
        if part.get("type") == "diff" and isinstance(part.get("path"), str):
            yield part["path"]


def script_of(words: list[str]) -> str:
    """A list of words as a command line; what a shell is given to run, by itself."""
    match words:
        case [shell, "-c" | "-lc" | "-ic" | "-cl", script] if PurePath(shell).name in SHELLS:
            return script
        case _:
            return shlex.join(words)


# what an agent asks of the client itself


def requested(method: str, params: Message) -> ForeignCall | None:
    """A request for a file or a terminal as a call; None for another request."""
    path = params.get("path")
    match method:
        case "fs/read_text_file":
            return ForeignCall("Read", {"file_path": path}, True, f"Read {path}", "read")
        case "fs/write_text_file":
            args = {"file_path": path, "content": params.get("content")}
            return ForeignCall("Write", args, True, f"Write {path}", "edit")
        case "terminal/create":
            command = _terminal_command(params)
            args = {"command": command}
            if isinstance(params.get("cwd"), str):
                args["cwd"] = params["cwd"]
            return ForeignCall("Bash", args, True, command, "execute")
        case _:
            return None


def _terminal_command(params: Message) -> str:
    """The command line of a terminal, with its variables in front: they are judged as well."""
    command = str(params.get("command") or "")
    words: list[object] = params.get("args") or []
    variables: list[object] = params.get("env") or []
    line = script_of([command, *map(str, words)]) if words else command
    return " ".join([*(_assigned(as_object(each)) for each in variables), line])


def _assigned(variable: Mapping[str, Any]) -> str:
    return f"{variable.get('name')}={shlex.quote(str(variable.get('value')))}"
