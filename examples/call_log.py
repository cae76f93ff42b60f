"""A line for each call, with what came of it, in a file beside the project.

    crow run --extension examples/call_log.py "Read README.md"

At `after_tool` a call has ended, also one that was denied or failed; at `before_tool` nobody knows.
"""

import json
from pathlib import Path

from crow import ToolContext


def after_tool(ctx: ToolContext) -> None:
    entry = {"call": ctx.name, "args": ctx.args, "outcome": ctx.outcome, "seconds": ctx.duration}
    with Path(ctx.cwd, "calls.jsonl").open("a") as log:
        log.write(json.dumps(entry) + "\n")
