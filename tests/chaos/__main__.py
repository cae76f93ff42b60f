"""Runs the tests of the seventy faults and prints a table: what happens, what Crow does, and whether.

``python -m tests.chaos`` is what `make chaos` calls; further arguments go to pytest. The status is 1
where a fault has a test that failed, or none that passed.
"""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from tests.chaos.faults import FAULTS, LIFE, Fault

ROWS = (*FAULTS, LIFE)


class Table:
    """A plugin of pytest that counts what became of each fault's tests."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {fault.name: Counter() for fault in ROWS}
        self._faults: dict[str, list[str]] = {}
        for fault in ROWS:
            for test in fault.node_ids():
                self._faults.setdefault(test, []).append(fault.name)

    @property
    def tests(self) -> list[str]:
        """The tests of all faults, each once."""
        return list(self._faults)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test when it has been called, or was not because something failed before."""
        if report.when == "call" or report.outcome != "passed":
            for name in self._faults[report.nodeid.partition("[")[0]]:
                self.outcomes[name][report.outcome] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print it."""
        terminalreporter.section("faults")
        for fault in ROWS:
            terminalreporter.line(self._row(fault))
        held = sum(map(self.holds, FAULTS))
        terminalreporter.line(f"\n{held} of {len(FAULTS)} faults are survived")

    def _row(self, fault: Fault) -> str:
        counted = self.outcomes[fault.name]
        said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counted.items()))
        mark = "ok  " if self.holds(fault) else "FAIL"
        return f"{mark} {fault.name:3}  {fault.happens:64}  {fault.expected:66}  {said}"

    def holds(self, fault: Fault) -> bool:
        """Whether some of its tests passed, and none failed."""
        counted = self.outcomes[fault.name]
        return bool(counted["passed"]) and not counted["failed"]


def main(arguments: list[str]) -> int:
    """Run them; the status."""
    table = Table()
    status = pytest.main(["-m", "", "-q", *arguments, *table.tests], plugins=[table])
    return int(status) or int(not all(map(table.holds, ROWS)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
