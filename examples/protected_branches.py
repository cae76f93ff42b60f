"""Nothing is committed or pushed on a protected branch, however the command is written.

    crow run --extension examples/protected_branches.py "Commit this"

The command is split as shells do: a search for `git commit` misses `git -C . commit` and finds
`echo "git commit"`. Scripts and `cd` are not followed; the last word is a rule on the server.
"""

import asyncio
import os
import shlex
from asyncio.subprocess import DEVNULL, PIPE

from crow import Deny, ToolContext

PROTECTED = {"main", "master"}
WRITES = {"commit", "push", "merge", "rebase", "reset", "cherry-pick", "revert", "am"}
WITH_VALUE = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"}


def git_calls(command: str) -> list[list[str]]:
    """The words behind each git of a command line."""
    lexer = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=True)
    calls: list[list[str]] = []
    inside = False
    for word in lexer:
        if set(word) <= set("();<>|&"):
            inside = False
        elif inside:
            calls[-1].append(word)
        elif os.path.basename(word) == "git":  # noqa: PTH119 - a word
            inside = True
            calls.append([])
    return calls


async def before_tool(ctx: ToolContext) -> Deny | None:
    switched = ""
    for words in git_calls(ctx.args["command"]) if ctx.name == "Bash" else []:
        folder = ctx.cwd
        while words and words[0].startswith("-"):
            value = words.pop(1) if words[0] in WITH_VALUE and len(words) > 1 else ""
            folder = os.path.join(folder, value) if words.pop(0) == "-C" else folder  # noqa: PTH118
        action, names = "".join(words[:1]), {word.rpartition(":")[2] for word in words[1:]}
        if action in {"checkout", "switch"}:
            switched = next(iter(names & PROTECTED), switched)
        if action in WRITES and (
            on := names & PROTECTED or PROTECTED & {switched or await branch(folder)}
        ):
            return Deny(f"{on.pop()} is protected: make a branch of your own first")
    return None


async def branch(folder: str) -> str:
    command = "git", "symbolic-ref", "--short", "HEAD"
    git = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=PIPE, stderr=DEVNULL)
    return (await git.communicate())[0].decode().strip()
