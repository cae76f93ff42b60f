"""The model is told when an output was large, so that it asks for less the next time.

crow run --extension examples/large_output.py "Run `seq 100000`"
"""

from crow import Call, hook

LARGE = 20_000


@hook("PostToolUse")
def large_output(call: Call, output: str) -> str | None:
    if len(output) < LARGE:
        return None
    return f"The output of {call.name} has {len(output)} characters: ask for less next time."
