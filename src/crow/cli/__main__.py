"""``python -m crow.cli`` is the command ``crow``."""

from __future__ import annotations

import sys

from crow.cli import main

sys.exit(main())
