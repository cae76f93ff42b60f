"""Commands that never run, whatever the rules allow: a text that a gate answers is a denial.

    crow run --extension examples/deny_list.py "Run `sudo ls`"

A list is for habits, and no wall: what must not happen is for the rules and the sandbox.
"""

import shlex

from crow import Call, hook

DENIED = {"sudo", "mkfs", "shutdown", "reboot"}


@hook("PreToolUse", tools={"Bash"})
def deny_list(call: Call) -> str | None:
    words = shlex.shlex(call.input["command"], posix=False, punctuation_chars=True)
    found = DENIED & {word.rpartition("/")[2] for word in words}
    return f"{found.pop()} is never run here" if found else None
