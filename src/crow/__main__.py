"""``python -m crow`` is the command ``crow``."""

from __future__ import annotations

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - nothing else is imported
    del sys.path[0]  # a queue.py of the folder that one works in is none of Python's

from crow.cli import main

if __name__ == "__main__":
    sys.exit(main())
