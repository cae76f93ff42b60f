"""The folder that the demonstration plays in: a small project, and files that may go."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from crow.core.support.frozen import frozen

PROJECT = {
    "README.md": (
        "# Weather station\n\nReads a thermometer once a minute.\n\n"
        "- `station.py` reads and prints\n- `tests/` checks it\n"
    ),
    "station.py": 'def reading() -> str:\n    return "21.5 C"\n\n\nprint(reading())\n',
    "tests/test_station.py": "from station import reading\n\nassert reading().endswith('C')\n",
}
TEMPORARY = ("build.tmp", "cache.tmp", "download.tmp", "notes.txt")


@frozen
class DemoFolder:
    """``project`` is where the agent works, ``tmp`` stands for ``/tmp``."""

    folder: Path
    project: Path
    tmp: Path

    def files(self) -> str:
        """What lies in ``tmp`` now."""
        return ", ".join(sorted(path.name for path in self.tmp.iterdir())) or "nothing"


def make() -> DemoFolder:
    """A fresh folder with the files in it."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="crow-demo-")))
    place = DemoFolder(folder, folder / "project", folder / "tmp")
    for name, text in PROJECT.items():
        write(place.project / name, text)
    for name in TEMPORARY:
        write(place.tmp / name, "nobody needs this\n")
    return place


def write(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
