"""The fuzzer, run for a while: what Crow lets through runs, in a sandbox and under a tracer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).parents[2] / "fuzz_shell.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="it needs bash, and Linux for its sandbox")
def test_nothing_runs_that_no_rule_names():
    argv = [sys.executable, FUZZER, "--seconds", "30"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
