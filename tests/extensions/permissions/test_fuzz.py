"""The fuzzer, tried for some commands: what Crow lets through runs, in a sandbox, under a tracer.

The commands are always the same, however fast the machine is; ``CROW_FUZZ_SEED=random`` takes others.
"""

from __future__ import annotations

import os
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
    seed = os.environ.get("CROW_FUZZ_SEED", "8")
    argv = [sys.executable, "-m", "tests.fuzz_shell", "--commands", "1500"]
    argv += [] if seed == "random" else ["--seed", seed]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
