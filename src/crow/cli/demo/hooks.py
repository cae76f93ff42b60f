"""Five hooks as a user writes them: plain functions that name what they want to know.

`crow demo` hangs them on the loop. To use them yourself, copy the file and run
``crow run --extension hooks.py "..."``.
"""

from __future__ import annotations

from typing import Any

from crow import hook

DANGEROUS = ("rm ", "sudo ", "mkfs", "shutdown", "> /dev/")
LARGE = 100_000


@hook("UserPromptSubmit")
def context_hook(query: str, cwd: str) -> None:
    """Say where the agent works."""
    print(f"  context_hook: {query!r} in {cwd}")


@hook("PreToolUse", tools=["Bash"])
def permission_hook(block: Any) -> str | None:
    """Deny what destroys: text that a PreToolUse hook returns is the reason of the denial."""
    command = block.input.get("command", "")
    for pattern in DANGEROUS:
        if pattern in command:
            return f"permission_hook: commands with {pattern.strip()!r} are not allowed here"
    return None


@hook("PreToolUse")
def log_hook(block: Any) -> None:
    """Log every call."""
    shown = ", ".join(f"{name}={str(value)[:40]!r}" for name, value in block.input.items())
    print(f"  log_hook: {block.name}({shown})")


@hook("PostToolUse")
def large_output_hook(block: Any, output: str) -> str | None:
    """Remind the model of an output that is very large."""
    if len(output) < LARGE:
        return None
    return f"The output of {block.name} has {len(output)} characters: ask for less next time."


@hook("Stop")
def summary_hook(messages: list[Any]) -> None:
    """Sum up what was done."""
    calls = sum(len(message.get("tool_calls", ())) for message in messages)
    print(f"  summary_hook: tool calls in this session so far: {calls}")


HOOKS = (context_hook, permission_hook, log_hook, large_output_hook, summary_hook)
