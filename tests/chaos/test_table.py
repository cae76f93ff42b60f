"""The table of faults names seventy, each with tests that there are."""

from __future__ import annotations

from collections import Counter

from tests.chaos.faults import FAULTS


def test_there_are_seventy_faults_each_with_tests() -> None:
    letters = Counter(fault.name[0] for fault in FAULTS)
    assert letters == {"L": 20, "T": 10, "C": 12, "S": 10, "H": 9, "M": 9}
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(fault.node_ids() for fault in FAULTS)
