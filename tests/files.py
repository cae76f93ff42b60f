"""Files that tests write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, content: Any) -> Path:
    """Write a text, or anything else as JSON, in a folder that is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path
