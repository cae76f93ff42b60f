"""A function as an extension: it is named like an event, so it hangs there.

    crow run --extension examples/ask_before_removing.py "Delete the build folder"

`Ask` lets the user decide; where nobody can be asked, the call is denied.
"""

from __future__ import annotations

import shlex

from crow import Ask, ToolContext


def before_tool(ctx: ToolContext) -> Ask | None:
    if ctx.name != "Bash":
        return None
    words = shlex.shlex(ctx.args["command"], posix=False, punctuation_chars=True)
    removes = {"rm", "rmdir", "unlink", "shred"} & set(words)
    return Ask(f"this removes files: {ctx.args['command']}") if removes else None
