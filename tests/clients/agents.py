"""Agents that others wrote: what each is installed from, and set up with."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.clients.conftest import KEPT
from tests.npm import programs

from crow.core.frozen import frozen

INSTALLING = 300
CODEX = """
model = "double"
model_provider = "double"
{policy}
check_for_update_on_startup = false
[model_providers.double]
name = "double"
base_url = "{url}/v1"
env_key = "DOUBLE_KEY"
wire_api = "responses"
[analytics]
enabled = false
"""
OLDER = 'approval_policy = "untrusted"\nsandbox_mode = "danger-full-access"'
KIMI = """
default_model = "double"
[providers.double]
type = "openai"
base_url = "{url}/v1"
api_key = "x"
[models.double]
provider = "double"
model = "double"
max_context_size = 100000
"""
OPENCODE: dict[str, Any] = {
    "autoupdate": False,
    "share": "disabled",
    "model": "double/double",
    "small_model": "double/double",
    "permission": {"edit": "ask", "bash": "ask"},
}


@frozen
class Foreign:
    """An agent: a package of npm, its program, and what it wants of a home and an environment.

    ``beside`` are packages that it wants at hand. ``run`` and ``write`` make the call of its model's with which it runs a command or writes a
    file. ``names_its_command`` is False where a question only shows it, so that no rule can allow.
    """

    package: str
    program: str
    args: tuple[str, ...]
    env: dict[str, str]
    run: Callable[[str], dict[str, dict[str, Any]]]
    write: Callable[[Path, str], dict[str, dict[str, Any]]]
    files: dict[str, str]
    names_its_command: bool = True
    beside: tuple[str, ...] = ()

    def command(self, url: str) -> list[str]:
        """The command, with everything where the agent looks for it."""
        for place, text in self.files.items():
            path = Path.home() / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("{url}", url), "utf-8")
        return [*installed(self.package, self.program, *self.beside), *self.args]

    def environment(self, url: str) -> dict[str, str]:
        """What it has to find among the variables, the programs of its packages among them."""
        own = {name: value.replace("{url}", url) for name, value in self.env.items()}
        bin_folder = str(place_of(self.package) / "node_modules/.bin")
        return {**own, "PATH": os.pathsep.join([bin_folder, path_with_node()])}


def place_of(package: str) -> Path:
    """Where a package of npm is installed."""
    return KEPT / "agents" / package.rpartition("@")[0].lstrip("@").replace("/", "-")


def path_with_node() -> str:
    """PATH, with the Node that is used here in front."""
    folders = [str(Path(there[0]).parent)] if (there := programs()) else []
    return os.pathsep.join([*folders, os.environ.get("PATH", "")])


def installed(package: str, program: str, *beside: str) -> list[str]:
    """A program of a package of npm, which is installed in `KEPT` once, with others beside it."""
    if (there := programs()) is None:
        pytest.skip("needs Node and npm")
    node, npm = there
    folder = place_of(package)
    wanted = [package, *beside]
    if not (stamp := folder / "".join(f".{each.rpartition('@')[2]}" for each in wanted)).exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [*npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *wanted]
        try:
            env = {**os.environ, "PATH": path_with_node()}
            subprocess.run(command, env=env, check=True, capture_output=True, timeout=INSTALLING)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"{package} cannot be installed: {error}")
        stamp.touch()
    found = (folder / "node_modules/.bin" / program).resolve()
    is_script = found.read_bytes()[:2] == b"#!"
    return [node, str(found)] if is_script else [str(found)]


def opencode(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """What opencode's model writes a file with."""
    return {"write": {"filePath": str(path), "content": text}}


def shell(command: str) -> dict[str, dict[str, Any]]:
    """What codex's model runs a command with."""
    return {"exec_command": {"cmd": command}}


def escalated(command: str) -> dict[str, dict[str, Any]]:
    """The same, out of its sandbox: the newer adapter asks about nothing else."""
    asking = {"sandbox_permissions": "require_escalated", "justification": "x"}
    return {"exec_command": {"cmd": command, **asking}}


def printed(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """What it writes a file with: it has no tool for that with a model that it does not know."""
    return escalated(printing(path, text))


def redirected(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """The same, in its sandbox."""
    return shell(printing(path, text))


def printing(path: Path, text: str) -> str:
    """A command that writes a file."""
    return f"printf %s {shlex.quote(text)} > {path}"


def run_shell_command(command: str) -> dict[str, dict[str, Any]]:
    """What Gemini, and what was made from it, runs a command with."""
    return {"run_shell_command": {"command": command, "description": "x", "is_background": False}}


def write_file(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """What they write a file with."""
    return {"write_file": {"file_path": str(path), "content": text}}


def bash(command: str) -> dict[str, dict[str, Any]]:
    """What Claude Code and Kimi run a command with, and opencode, too."""
    args = {"command": command, "description": "x"}
    return {"Bash": args, "bash": args}


def write(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """What Claude Code writes a file with."""
    return {"Write": {"file_path": str(path), "content": text}}


def pi_write(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """What pi writes a file with."""
    return {"write": {"path": str(path), "content": text}}


def kimi_write(path: Path, text: str) -> dict[str, dict[str, Any]]:
    """What Kimi writes a file with."""
    return {"Write": {"path": str(path), "content": text}}


AGENTS: dict[str, Foreign] = {
    "gemini": Foreign(
        "@google/gemini-cli@0.61.0",
        "gemini",
        ("--acp",),
        {
            "GEMINI_API_KEY": "x",
            "GEMINI_MODEL": "gemini-2.5-flash",
            "GOOGLE_GEMINI_BASE_URL": "{url}",
        },
        run_shell_command,
        write_file,
        {},
        names_its_command=False,
    ),
    "qwen": Foreign(
        "@qwen-code/qwen-code@0.24.4",
        "qwen",
        ("--acp", "--auth-type", "openai"),
        {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": "double"},
        run_shell_command,
        write_file,
        {},
    ),
    "opencode": Foreign(
        "opencode-ai@1.18.33",
        "opencode",
        ("acp",),
        {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
        bash,
        opencode,
        {
            ".config/opencode/opencode.json": json.dumps(
                {
                    **OPENCODE,
                    "provider": {
                        "double": {
                            "npm": "@ai-sdk/openai-compatible",
                            "name": "double",
                            "api": "{url}/v1",
                            "options": {"baseURL": "{url}/v1", "apiKey": "x"},
                            "models": {"double": {"name": "double"}},
                        }
                    },
                }
            )
        },
    ),
    "kimi": Foreign(
        "@moonshot-ai/kimi-code@2.1.0",
        "kimi",
        ("acp",),
        {},
        bash,
        kimi_write,
        {".kimi-code/config.toml": KIMI},
        names_its_command=False,
    ),
    "codex": Foreign(
        "@agentclientprotocol/codex-acp@2.6.0",
        "codex-acp",
        (),
        {"DOUBLE_KEY": "x", "OPENAI_API_KEY": "x", "INITIAL_AGENT_MODE": "read-only"},
        escalated,
        printed,
        {".codex/config.toml": CODEX.replace("{policy}", "")},
    ),
    "codex in Rust": Foreign(
        "@zed-industries/codex-acp@0.16.0",
        "codex-acp",
        (),
        {"DOUBLE_KEY": "x", "OPENAI_API_KEY": "x"},
        shell,
        redirected,
        {".codex/config.toml": CODEX.replace("{policy}", OLDER)},
    ),
    "claude": Foreign(
        "@agentclientprotocol/claude-agent-acp@0.101.0",
        "claude-agent-acp",
        (),
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "sk-ant-x",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",  # it would ask beside the user
            "IS_SANDBOX": "1",
        },
        bash,
        write,
        {".claude/settings.json": json.dumps({"permissions": {"defaultMode": "default"}})},
    ),
}
PI = Foreign(
    "pi-acp@0.0.34",
    "pi-acp",
    (),
    {},
    bash,
    pi_write,
    {
        ".pi/agent/models.json": json.dumps(
            {
                "providers": {
                    "double": {
                        "baseUrl": "{url}/v1",
                        "api": "openai-completions",
                        "apiKey": "x",
                        "models": [{"id": "double"}],
                    }
                }
            }
        ),
        ".pi/agent/settings.json": json.dumps(
            {"defaultProvider": "double", "defaultModel": "double"}
        ),
    },
    beside=("@earendil-works/pi-coding-agent@1.6.0",),
)
"""It asks about nothing. Beside pi 0.73, of its older name, it never answers ``session/new``."""
