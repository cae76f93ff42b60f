"""The environment of a hook's program, its directory and its command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crow.extensions.shell_hooks.handler import Handler
from crow.process import python_cache_env

if TYPE_CHECKING:
    from crow.project import Plugin

SCRUB = "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"
CREDENTIAL = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_KEY(?:_ID)?|PRIVATE_KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)"
    r"(?:$|_)|^(?:AWS|AZURE|GOOGLE)_",
    re.IGNORECASE,
)
"""Names of variables that are taken for credentials where ``SCRUB`` is set to 1."""
DEPTH = "CROW_HOOK_DEPTH"
DEEPEST = 3
HARMLESS = re.compile(r"[\w./@%+=:,~-]*")
SKILL = "CLAUDE_SKILL_DIR"
PLACES = ("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", SKILL)
PLACEHOLDER = re.compile(rf"\$\{{(?:({'|'.join(PLACES)})|user_config\.(\w+))\}}")


def environment(
    given: Mapping[str, str], project: str, session_id: str, env_file: str | None, effort: str = ""
) -> dict[str, str]:
    """The environment of a hook: what programs are ``given``, and what the protocol sets.

    ``effort`` is how hard the model is made to think, where that was chosen.
    """
    env = dict(filter(_is_handed_on, given.items()))
    env |= {
        "CLAUDE_PROJECT_DIR": project,
        "CLAUDE_CODE_SESSION_ID": session_id,
        "CLAUDE_PID": str(os.getpid()),
        "CLAUDECODE": "1",
        "CLAUDE_CODE_CHILD_SESSION": "1",
        DEPTH: str(depth() + 1),
        **python_cache_env(),
    }
    if env_file is not None:
        env["CLAUDE_ENV_FILE"] = env_file
    if effort:
        env["CLAUDE_EFFORT"] = effort
    return env


def of_plugin(plugin: Plugin) -> dict[str, str]:
    """What a plugin's programs find beside; its folder for data is made. Raises ``OSError``."""
    plugin.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    options = {
        f"CLAUDE_PLUGIN_OPTION_{key.upper()}": written(value)
        for key, value in plugin.options.items()
        if key.isidentifier()
    }
    folders = {"CLAUDE_PLUGIN_ROOT": str(plugin.root), "CLAUDE_PLUGIN_DATA": str(plugin.data)}
    return folders | options


def written(value: object) -> str:
    """A plugin's option as text."""
    return value if isinstance(value, str) else json.dumps(value)


def _is_handed_on(variable: tuple[str, str]) -> bool:
    name = variable[0]
    if name.startswith("OTEL_"):
        return False
    return os.environ.get(SCRUB) != "1" or CREDENTIAL.search(name) is None


def depth() -> int:
    """How many hooks stand between this process and the first Crow."""
    written = os.environ.get(DEPTH, "")
    return int(written) if written.isdecimal() else 0


def directory(*wanted: str) -> str:
    """The first of these directories that is there, else the home, else the temporary one."""
    for path in (*wanted, str(Path.home())):
        if os.path.isdir(path):  # noqa: PTH112 - a path may be any text
            return path
    return tempfile.gettempdir()


def command_line(handler: Handler, env: Mapping[str, str]) -> list[str]:
    """The program and its arguments: spawned as they stand, or for the shell.

    Raises ``ValueError`` for an option that its plugin does not have.
    """
    command: str = handler.spec["command"]
    args: list[str] | None = handler.spec.get("args")
    places = {name: env[name] for name in PLACES if name in env}
    if args is not None:
        return [_filled(part, places, handler.plugin) for part in (command, *args)]
    for name, path in places.items():
        if HARMLESS.fullmatch(path):  # else the shell puts it in, which quotes it where it must
            command = command.replace(f"${{{name}}}", path)
    if handler.spec.get("shell") == "powershell":
        return ["pwsh", "-NoProfile", "-NonInteractive", "-Command", command]
    prefix = env.get("CLAUDE_CODE_SHELL_PREFIX")
    return ["sh", "-c", f"{prefix} {shlex.quote(command)}" if prefix else command]


def _filled(part: str, places: Mapping[str, str], plugin: Plugin | None) -> str:
    """A part of a command line that no shell reads, with what its placeholders stand for."""

    def value(found: re.Match[str]) -> str:
        name, option = found[1], found[2]
        if name:
            return places.get(name, found[0])
        if plugin is None:
            return found[0]
        if option not in plugin.options:
            raise ValueError(f"the plugin {plugin.name} has no option {option!r}")
        return written(plugin.options[option])

    return PLACEHOLDER.sub(value, part)
