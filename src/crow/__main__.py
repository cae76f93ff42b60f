"""``python -m crow`` is the command ``crow``."""

from __future__ import annotations

import gc
import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - nothing else is imported
    del sys.path[0]  # a queue.py of the folder that one works in is none of Python's


def main() -> int:
    """Import the command line and run it. What is imported stays: no garbage is looked for."""
    gc.disable()
    from crow.cli import main as run

    gc.enable()
    return run()


if __name__ == "__main__":
    sys.exit(main())
