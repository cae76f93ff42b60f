"""How much a command may use: the limits that the kernel keeps for each process."""

from __future__ import annotations

from collections.abc import Sequence

from crow.extensions.sandbox.policy import Limits

_SET = "{} 2>/dev/null; "


def limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """A command that sets its limits and becomes what it was; it leaves no core dumps either.

    What cannot be set (a higher limit than its parent's) stays as it was.
    """
    kept = [("ulimit -n {0}", limits.open_files, 1), ("ulimit -f {0}", limits.file_size, 512)]
    kept += [("ulimit -v {0}", limits.memory, 1024)]
    kept += [("ulimit -u {0} 2>/dev/null || ulimit -p {0}", limits.processes, 1)]
    lines = [line.format(value // unit) for line, value, unit in kept if value is not None]
    if not lines:
        return list(argv)
    script = "".join(_SET.format(line) for line in ["ulimit -c 0", *lines])
    return ["/bin/sh", "-c", f'{script}exec "$@"', "sh", *argv]
