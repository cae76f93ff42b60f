"""``python -m crow`` is the command ``crow``."""

from __future__ import annotations

import sys

from crow.cli import main

if __name__ == "__main__":
    sys.exit(main())
