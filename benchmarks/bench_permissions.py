"""What deciding on a shell command costs, with and without the second parser that confirms it.

A command is judged once in a new process group of parsers, as in a session's first call, and then
again. Medians; a decision that is made again should stay under half a millisecond.
"""

from __future__ import annotations

import statistics
import time

from crow.extensions.permissions import Permissions
from crow.extensions.permissions.opinion import SecondOpinion

ROUNDS = 200
COMMANDS = (
    "ls -la",
    "git status && git diff --stat | head -20",
    'for f in *.py; do wc -l "$f"; done',
    "cd src && grep -rn 'def main' . | sort > /dev/null",
    "python -m pytest -q tests/core -k 'loop and not slow'",
)


def timed(permissions: Permissions, command: str) -> float:
    began = time.perf_counter()
    permissions.judge("Bash", {"command": command}, cwd="/")
    return time.perf_counter() - began


def main() -> None:
    second = SecondOpinion()
    permissions = Permissions.of(allow=("Bash(git *)", "Bash(grep *)"), second=second)
    first = [timed(permissions, command) for command in COMMANDS]
    again = [timed(permissions, command) for command in COMMANDS for _ in range(ROUNDS)]
    print(f"first decision    {statistics.median(first) * 1000:8.3f} ms")
    print(f"decided again     {statistics.median(again) * 1000:8.3f} ms")


if __name__ == "__main__":
    main()
