"""The fuzzer, run for a while: what Crow lets through runs, in a sandbox and under a tracer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.tracing import Tracer

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Tracer.is_there(), reason="it needs Linux, strace, bubblewrap and bash")
def test_nothing_runs_that_no_rule_names():
    argv = [sys.executable, "-m", "tests.fuzz_shell", "--seconds", "30"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
