"""Runs a Python script and writes down how many calls of functions it made: FILE SCRIPT ARGUMENT...

Those of Python and of C, in the main thread. A busy machine does not change them.
"""

from __future__ import annotations

import cProfile
import runpy
import sys
from pathlib import Path


def main(file: str, script: str) -> None:
    profile = cProfile.Profile()
    try:
        profile.runcall(runpy.run_path, script, run_name="__main__")
    finally:
        calls = sum(each.callcount for each in profile.getstats())
        Path(file).write_text(str(calls))


if __name__ == "__main__":
    file, script = sys.argv[1:3]
    del sys.argv[:2]
    sys.path[0] = str(Path(script).parent)
    main(file, script)
