"""Entries of public hook collections: what their authors say that they do, as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field
from typing import Any, TypeAlias

from crow.core.support.frozen import frozen


@frozen
class Call:
    """A tool that the model calls."""

    name: str
    args: dict[str, Any]


Reply: TypeAlias = "str | Call | Sequence[Call]"


@frozen
class Run:
    """A prompt, what the model says in turn, and what has to come of it.

    ``sees`` are texts that the model is sent, each in one request at least; ``misses`` are in none.
    ``told`` are texts for the person, ``then`` are further prompts in the same process,
    ``person`` is what the person of an editor answers.
    """

    prompt: str
    replies: tuple[Reply, ...] = ()
    sees: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])
    status: int = 0
    then: tuple[str, ...] = ()
    person: str = ""


@frozen
class Entry:
    """One entry: where it is, how it is installed, and what it does.

    ``copies`` maps what lies in the repository to where it goes (``~/`` is the home); ``settings``
    are a table or a file of theirs; ``plugins`` are folders of theirs. ``leaves`` maps files to
    texts that are in them afterwards, ``lacks`` names files that are not there.
    """

    name: str
    repository: str
    runs: tuple[Run, ...]
    copies: dict[str, str] = field(default_factory=dict[str, str])
    settings: dict[str, Any] | str = ""
    plugins: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict[str, str])
    first: tuple[str, ...] = ()
    leaves: dict[str, str] = field(default_factory=dict[str, str])
    lacks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def bash(command: str) -> Call:
    """A command."""
    return Call("Bash", {"command": command, "description": "x"})


def write(path: str, content: str) -> Call:
    """A file that is written."""
    return Call("Write", {"file_path": path, "content": content})


def edit(path: str, old: str, new: str) -> Call:
    """A file that is changed."""
    return Call("Edit", {"file_path": path, "old_string": old, "new_string": new})


def read(path: str) -> Call:
    """A file that is read."""
    return Call("Read", {"file_path": path})


def decision(what: str, why: str) -> str:
    """What a model says that is asked for the answer of a program."""
    told = {"permissionDecision": what, "permissionDecisionReason": why}
    return json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}})


def hook(command: str, matcher: str | None = None, **more: Any) -> list[dict[str, Any]]:
    """The groups of an event with one command."""
    group: dict[str, Any] = {"hooks": [{"type": "command", "command": command, **more}]}
    return [group if matcher is None else {"matcher": matcher, **group}]


MASTERY = "disler/claude-code-hooks-mastery"
OBSERVABILITY = "disler/claude-code-hooks-multi-agent-observability"
DAMAGE = "disler/claude-code-damage-control"
CLAUDE = "anthropics/claude-code"
KARAN = "karanb192/claude-code-hooks"
TEMPLATES = "davila7/claude-code-templates"
THEIRS = "cli-tool/components/hooks"
SAFETY = "pchalasani/claude-code-tools"
GIT = "git init -q && git config user.name A && git config user.email a@b"

ENTRIES = (
    Entry(
        "guard of rm and .env",
        MASTERY,
        copies={".claude": ".claude"},
        settings=".claude/settings.json",
        files={".env": "KEY=1\n"},
        needs=("uv",),
        runs=(
            Run(
                "go",
                (bash("rm -rf build/.."), read(".env"), bash("echo fine"), "Done."),
                sees=(
                    "BLOCKED: Dangerous rm command detected and prevented",
                    "BLOCKED: Access to .env files",
                    "fine",
                ),
                misses=("KEY=1",),
            ),
        ),
        leaves={"logs/pre_tool_use.json": "echo fine"},
    ),
    Entry(
        "log of every event",
        MASTERY,
        copies={".claude": ".claude"},
        settings=".claude/settings.json",
        needs=("uv",),
        runs=(
            Run(
                "remember me",
                (
                    Call(
                        "Agent",
                        {
                            "description": "x",
                            "prompt": "Say hi",
                            "subagent_type": "hello-world-agent",
                        },
                    ),
                    "Hi from below.",
                    bash("false"),
                    "Done.",
                    "A summary.",
                ),
                sees=("Hi from below.",),
                then=("/compact",),
                env={"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "30000"},
            ),
        ),
        leaves={
            "logs/session_start.json": '"source": "startup"',
            "logs/user_prompt_submit.json": "remember me",
            "logs/pre_tool_use.json": "hello-world-agent",
            "logs/post_tool_use.json": '"hook_event_name": "PostToolUse"',
            "logs/post_tool_use_failure.json": "false",
            "logs/subagent_start.json": "hello-world-agent",
            "logs/subagent_stop.json": '"hook_event_name": "SubagentStop"',
            "logs/stop.json": '"stop_hook_active": false',
            "logs/chat.json": "remember me",
            "logs/pre_compact.json": '"trigger": "manual"',
            "logs/session_end.json": '"hook_event_name": "SessionEnd"',
        },
    ),
    Entry(
        "damage control, commands and paths",
        DAMAGE,
        copies={
            ".claude/skills/damage-control/hooks/damage-control-python": (
                ".claude/hooks/damage-control"
            ),
            ".claude/skills/damage-control/patterns.yaml": (
                ".claude/hooks/damage-control/patterns.yaml"
            ),
        },
        settings=(".claude/skills/damage-control/hooks/damage-control-python/python-settings.json"),
        files={".env": "KEY=1\n"},
        needs=("uv",),
        runs=(
            Run(
                "go",
                (
                    # the second hook asks the model, which answers as its author wants it to
                    bash("git stash clear"),
                    '{"decision": "approve", "reason": "harmless"}',
                    bash("echo fine"),
                    '{"decision": "approve", "reason": "harmless"}',
                    edit(".env", "KEY=1", "KEY=2"),
                    "Done.",
                ),
                sees=("git stash clear (deletes ALL stashes)", "fine", "Blocked edit to"),
                misses=("could not decide",),
            ),
        ),
        leaves={".env": "KEY=1"},
    ),
    Entry(
        "events sent to a server",
        OBSERVABILITY,
        copies={".claude": ".claude"},
        settings={
            "hooks": {
                event: hook(
                    "uv run $CLAUDE_PROJECT_DIR/.claude/hooks/send_event.py --source-app x "
                    f"--event-type {event} --server-url $EVENTS {more}"
                )
                for event, more in {
                    "SessionStart": "",
                    "UserPromptSubmit": "",
                    "PreToolUse": "",
                    "PostToolUse": "",
                    "Stop": "--add-chat",
                    "SessionEnd": "",
                }.items()
            }
        },
        needs=("uv",),
        runs=(Run("go", (bash("echo fine"), "Done.")),),
        leaves={
            "events": ("SessionStart UserPromptSubmit PreToolUse PostToolUse Stop+chat SessionEnd")
        },
    ),
    Entry(
        "example of Claude Code's repository",
        CLAUDE,
        copies={"examples/hooks/bash_command_validator_example.py": ".claude/validator.py"},
        settings={"hooks": {"PreToolUse": hook("python3 .claude/validator.py", "Bash")}},
        runs=(
            Run(
                "go",
                (bash("grep x y"), bash("find . -name x"), bash("echo a | grep a"), "Done."),
                sees=("Use 'rg' (ripgrep) instead of 'grep'", "Use 'rg --files"),
            ),
        ),
    ),
    Entry(
        "ralph-wiggum",
        CLAUDE,
        plugins=("plugins/ralph-wiggum",),
        needs=("jq", "perl"),
        runs=(
            Run(
                "/ralph-loop Count the crows --max-iterations 5 --completion-promise COUNTED",
                ("One.", "Two.", "<promise>COUNTED</promise>"),
                sees=("Count the crows",),
                argv=("--allowedTools", "Bash(*setup-ralph-loop.sh*)"),
            ),
        ),
        lacks=(".claude/ralph-loop.local.md",),
    ),
    Entry(
        "hookify",
        CLAUDE,
        plugins=("plugins/hookify",),
        copies={
            "plugins/hookify/examples/dangerous-rm.local.md": ".claude/hookify.rm.local.md",
            "plugins/hookify/examples/console-log-warning.local.md": (
                ".claude/hookify.log.local.md"
            ),
        },
        runs=(
            Run(
                "go",
                (
                    bash("rm -rf nothing"),
                    read("a.js"),
                    edit("a.js", "0", "console.log(1)"),
                    "Done.",
                ),
                told=("Dangerous rm command detected", "Console.log detected"),
            ),
        ),
        files={"a.js": "0\n"},
        leaves={"a.js": "console.log(1)"},
    ),
    Entry(
        "security-guidance",
        CLAUDE,
        plugins=("plugins/security-guidance",),
        first=(GIT,),
        runs=(
            Run(
                "go",
                (write("a.py", "import os\nos.system('ls ' + input())\n"), "Done."),
                sees=("os.system",),
                env={"SG_SKIP_SDK_INSTALL": "1"},
            ),
        ),
    ),
    Entry(
        "explanatory-output-style",
        CLAUDE,
        plugins=("plugins/explanatory-output-style",),
        runs=(Run("go", ("Done.",), sees=("explanatory",)),),
    ),
    Entry(
        "superpowers",
        "obra/superpowers",
        plugins=(".",),
        runs=(
            Run(
                "go",
                (Call("Skill", {"skill": "superpowers:brainstorming"}), "Done."),
                sees=("You have superpowers.", "superpowers:using-superpowers"),
            ),
        ),
    ),
    Entry(
        "prompt-improver",
        "severity1/claude-code-prompt-improver",
        plugins=(".",),
        runs=(
            Run("fix the bug", ("Done.",), sees=("PROMPT EVALUATION", "fix the bug")),
            Run("* just do it", ("Done.",), sees=("just do it",)),
        ),
    ),
    Entry(
        "safety-net",
        "kenryu42/claude-code-safety-net",
        plugins=(".",),
        first=(GIT,),
        needs=("node",),
        runs=(
            Run(
                "go",
                (
                    bash("git reset --hard"),
                    bash("bash -c 'git checkout -- .'"),
                    bash("git status --short"),
                    "Done.",
                ),
                sees=("git reset --hard destroys", "git checkout --"),
            ),
        ),
    ),
    Entry(
        "safety-hooks",
        SAFETY,
        plugins=("plugins/safety-hooks",),
        files={".env": "KEY=1\n"},
        first=(GIT,),
        runs=(
            Run(
                "go",
                (bash("rm a"), read(".env"), bash("git commit -m x"), bash("ls -a"), "Done."),
                sees=("TRASH", "env"),
                misses=("KEY=1",),
            ),
        ),
    ),
    Entry(
        "protect-tests",
        KARAN,
        plugins=("plugins/protect-tests",),
        files={"tests/test_a.py": "def test_a():\n    assert True\n"},
        needs=("node",),
        runs=(
            Run(
                "go",
                (
                    bash("rm tests/test_a.py"),
                    edit(
                        "tests/test_a.py",
                        "def test_a():",
                        "import pytest\n@pytest.mark.skip\ndef test_a():",
                    ),
                    "Done.",
                ),
                sees=("delete-test", "skip-test"),
            ),
        ),
        leaves={"tests/test_a.py": "def test_a():\n    assert True\n"},
    ),
    Entry(
        "config-guard",
        KARAN,
        plugins=("plugins/config-guard",),
        needs=("node",),
        runs=(
            Run(
                "go",
                (
                    write(".claude/settings.json", "{}"),
                    bash("echo '{}' > .mcp.json"),
                    "Done.",
                ),
                sees=("settings.json", "mcp"),
            ),
        ),
        lacks=(".claude/settings.json", ".mcp.json"),
    ),
    Entry(
        "auto-stage",
        KARAN,
        plugins=("plugins/auto-stage",),
        first=(GIT,),
        needs=("node",),
        runs=(Run("go", (write("a.txt", "x\n"), "Done.")),),
        leaves={"git status --short": "A  a.txt"},
    ),
    Entry(
        "session-logger, asynchronous",
        KARAN,
        plugins=("plugins/session-logger",),
        needs=("node",),
        runs=(Run("go", (bash("echo noted"), write("a.txt", "x"), "Done.")),),
        leaves={"~/.claude/sessions": "echo noted"},
    ),
    Entry(
        "instructions-audit",
        KARAN,
        plugins=("plugins/instructions-audit",),
        files={"CLAUDE.md": "Be kind.\u200b\u2062\u2063\u200b hidden\n"},
        needs=("node",),
        runs=(
            Run(
                "go",
                (bash("echo fine"), "Then not."),
                sees=("instructions-audit locked this session",),
                told=("instructions-audit locked this session",),
                then=("go on",),
                status=1,
            ),
        ),
    ),
    Entry(
        "skill activation and tracking of edits",
        "diet103/claude-code-infrastructure-showcase",
        copies={".claude/hooks": ".claude/hooks", ".claude/skills": ".claude/skills"},
        settings={
            "hooks": {
                "UserPromptSubmit": hook(
                    "$CLAUDE_PROJECT_DIR/.claude/hooks/skill-activation-prompt.sh"
                ),
                "PostToolUse": hook(
                    "$CLAUDE_PROJECT_DIR/.claude/hooks/post-tool-use-tracker.sh",
                    "Edit|MultiEdit|Write",
                ),
            }
        },
        first=("cd .claude/hooks && chmod +x *.sh && npm install --no-audit --no-fund",),
        needs=("npm", "jq"),
        runs=(
            Run(
                "create a backend controller for the route",
                (write("backend/a.ts", "export {}\n"), "Done."),
                sees=("SKILL ACTIVATION CHECK", "backend-dev-guidelines"),
            ),
        ),
        leaves={".claude/tsc-cache": "backend/a.ts:backend"},
    ),
    Entry(
        "ccnotify",
        "dazuiba/CCNotify",
        copies={"ccnotify.py": "~/.claude/ccnotify/ccnotify.py"},
        settings={
            "hooks": {
                event: hook(f"~/.claude/ccnotify/ccnotify.py {event}")
                for event in ("UserPromptSubmit", "Stop", "Notification")
            }
        },
        first=("chmod +x ~/.claude/ccnotify/ccnotify.py",),
        runs=(Run("remember me", ("Done.",)),),
        leaves={"sqlite ~/.claude/ccnotify/ccnotify.db": "remember me"},
    ),
    Entry(
        "tdd-gate",
        TEMPLATES,
        copies={f"{THEIRS}/quality-gates/tdd-gate.sh": ".claude/hooks/tdd-gate.sh"},
        settings=f"{THEIRS}/quality-gates/tdd-gate.json",
        first=(GIT,),
        needs=("jq",),
        runs=(
            Run(
                "go",
                (
                    write("src/cart.py", "x = 1\n"),
                    write("src/test_cart.py", "def test_x(): pass\n"),
                    write("src/cart.py", "x = 1\n"),
                    "Done.",
                ),
                sees=("TDD",),
            ),
        ),
        leaves={"src/cart.py": "x = 1"},
    ),
    Entry(
        "conventional-commits",
        TEMPLATES,
        copies={f"{THEIRS}/git/conventional-commits.py": ".claude/hooks/conventional-commits.py"},
        settings=f"{THEIRS}/git/conventional-commits.json",
        first=(GIT, "touch a && git add a"),
        runs=(
            Run(
                "go",
                (bash('git commit -m "stuff"'), bash('git commit -m "feat: stuff"'), "Done."),
                sees=("Invalid commit message format",),
            ),
        ),
        leaves={"git log": "feat: stuff"},
    ),
    Entry(
        "env-file-protection, by an if",
        TEMPLATES,
        settings=f"{THEIRS}/security/env-file-protection.json",
        runs=(
            Run(
                "go",
                (write(".env.local", "A=1"), write("env.txt", "fine"), "Done."),
                sees=("Writing to .env files is blocked by hook",),
            ),
        ),
        leaves={"env.txt": "fine"},
        lacks=(".env.local",),
    ),
    Entry(
        "ai-bash-guard, an agent that judges",
        TEMPLATES,
        settings=f"{THEIRS}/security/ai-bash-guard.json",
        runs=(
            Run(
                "go",
                (
                    bash("git push --force origin main"),
                    decision("deny", "Never push by force."),
                    bash("echo fine"),
                    decision("allow", ""),
                    "Done.",
                ),
                sees=("Never push by force.", "fine"),
                misses=("could not decide",),
            ),
        ),
    ),
    Entry(
        "change-logger",
        TEMPLATES,
        copies={f"{THEIRS}/automation/change-logger.py": ".claude/hooks/change-logger.py"},
        settings=f"{THEIRS}/automation/change-logger.json",
        runs=(Run("go", (write("a.txt", "x"), bash("touch b"), bash("ls"), "Done.")),),
        leaves={".claude/critical_log_changes.csv": "touch b"},
    ),
    Entry(
        "planning-with-files, hooks of a skill",
        "OthmanAdi/planning-with-files",
        plugins=(".",),
        needs=(),
        runs=(
            Run(
                "go",
                (
                    Call("Skill", {"skill": "planning-with-files:planning-with-files"}),
                    write("task_plan.md", "# Plan\n\n### Phase 1: Look\n- **Status:** complete\n"),
                    "Planned.",
                    "Done.",
                ),
                sees=("ACTIVE PLAN", "Phase 1: Look"),
                then=("go on",),
            ),
        ),
    ),
    Entry(
        "quality check of TypeScript",
        "bartolli/claude-code-typescript-hooks",
        copies={".claude/hooks": ".claude/hooks"},
        settings={
            "hooks": {
                "PostToolUse": hook(
                    "node $CLAUDE_PROJECT_DIR/.claude/hooks/node-typescript/quality-check.js",
                    "Write|Edit|MultiEdit",
                )
            }
        },
        files={"package.json": "{}", "tsconfig.json": '{"compilerOptions": {"strict": true}}'},
        first=("npm install --no-audit --no-fund typescript@5",),
        needs=("npm",),
        runs=(
            Run(
                "go",
                (write("src/a.ts", "export const a: number = 'x';\n"), "Done."),
                sees=("TypeScript",),
            ),
        ),
    ),
    Entry(
        "quality of code, by directory",
        "decider/claude-hooks",
        copies={"hooks": "hooks", ".claude/hooks.json": ".claude/hooks.json"},
        settings=".claude/settings.json",
        runs=(
            Run(
                "go",
                (write("a.py", f"x = '{'y' * 200}'\n"), "Done."),
                sees=("line",),
            ),
        ),
    ),
    Entry(
        "seventeen hooks for one's home",
        "webdevtodayjason/claude-hooks",
        copies={"hooks": "~/.claude/hooks", "settings.example.json": "~/.claude/settings.json"},
        first=("chmod +x ~/.claude/hooks/*.py", GIT),
        runs=(
            Run(
                "go",
                (
                    write("schema.sql", "CREATE TABLE crows (id int);\n"),
                    bash('git commit --allow-empty -m "x"'),
                    write("notes.txt", "fine\n"),
                    "Done.",
                    "Reviewed.",
                ),
                sees=(
                    "Please review these items before ending the session.",
                    "Database schema validation failed!",
                    "Commit message validation failed!",
                ),
            ),
        ),
        leaves={"notes.txt": "fine"},
        lacks=("schema.sql",),
    ),
    Entry(
        "session summary",
        "Dev-GOM/claude-code-marketplace",
        plugins=("plugins/hook-session-summary",),
        files={"b.txt": "old\n"},
        needs=("node",),
        runs=(
            Run(
                "go",
                (write("a.txt", "x"), read("b.txt"), edit("b.txt", "old", "new"), "Done."),
            ),
        ),
        leaves={".session-summary.md": "a.txt"},
    ),
    Entry(
        "notice on Slack that somebody is waited for",
        KARAN,
        plugins=("plugins/notify-permission",),
        needs=("node",),
        runs=(
            Run(
                "go",
                (bash("touch made"), "Then not."),
                person="reject_once",
                env={"CCH_SLA_WEBHOOK": "$EVENTS"},
            ),
        ),
        leaves={"events": "Claude needs permission (Bash)"},
    ),
    Entry(
        "everything-claude-code",
        "affaan-m/everything-claude-code",
        plugins=(".",),
        files={".eslintrc.json": "{}"},
        needs=("node",),
        runs=(
            Run(
                "go",
                (edit(".eslintrc.json", "{}", '{"rules": {}}'), "Done."),
                sees=("BLOCKED",),
                argv=("--strict-mcp-config",),
            ),
        ),
        leaves={".eslintrc.json": "{}"},
    ),
)
