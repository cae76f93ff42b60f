"""What deciding on a call costs, in milliseconds, and what the second parser adds to that.

The calls are those of the tests' table; each is decided on with the answer of the second parser
remembered, and once without it.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from crow.extensions.permissions import LocalDisk, Permissions
from crow.extensions.permissions.shell.shfmt import SecondOpinion

TABLE = Path(__file__).parents[1] / "tests" / "extensions" / "permissions" / "cases.jsonl"
TARGET = 0.5


def timed(permissions: Permissions, case: dict[str, Any], cwd: str) -> float:
    given: Any = case["input"]
    args = {"command": given} if isinstance(given, str) else given
    began = time.perf_counter()
    permissions.judge(case.get("tool", "Bash"), args, cwd=cwd)
    return (time.perf_counter() - began) * 1000


def main() -> int:
    cases = [json.loads(line) for line in TABLE.read_text().splitlines()]
    warm: list[float] = []
    cold: list[float] = []
    with tempfile.TemporaryDirectory() as cwd:
        for case in cases[::4]:
            rules = {key: case.get(key, ()) for key in ("allow", "ask", "deny")}
            permissions = Permissions.of(
                **rules,
                mode=case.get("mode", "default"),
                disk=LocalDisk(cwd),
                second=SecondOpinion(),
            )
            cold.append(timed(permissions, case, cwd))
            warm.append(min(timed(permissions, case, cwd) for _ in range(3)))
    median, slow = statistics.median(warm), statistics.quantiles(warm, n=20)[-1]
    asked = statistics.quantiles(cold, n=20)[-1]
    print(f"permissions: {median:.3f} ms a call (median), {slow:.3f} ms (95th percentile)")
    print(f"             {asked:.3f} ms (95th percentile) where the second parser is asked")
    return 0 if median < TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())
