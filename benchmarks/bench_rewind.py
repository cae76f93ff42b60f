"""What keeping files costs: an edit, and a command in a folder of 50,000 files.

A look at the folder is compared with a bare walk of `os.scandir` with an `lstat` of every entry;
two looks are made around a command where the kernel does not tell what has changed. Times are the
least of several.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from crow.extensions import RewindHook
from crow.extensions.rewind.file_tracker import FileTracker, Limits
from crow.extensions.rewind.inotify import Inotify
from crow.extensions.rewind.path_state import Keeping, stamp_of
from crow.extensions.rewind.store import Store

FOLDERS, FILES, ROUNDS = 500, 100, 7
EDIT, COMMAND, RATIO = 0.005, 0.1, 3.0


def least(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    found: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def walk(root: str) -> int:
    """All that a look at a folder cannot do without."""
    count, folders = 0, [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return count


def fill(root: Path) -> None:
    for number in range(FOLDERS):
        folder = root / f"folder{number}"
        folder.mkdir(parents=True)
        for name in range(FILES):
            (folder / f"file{name}.py").write_bytes(b"%d %d\n" % (number, name) * 400)


def main() -> int:
    made = Path(tempfile.mkdtemp()).resolve()
    try:
        fill(made / "work")
        hook = RewindHook()
        limits = Limits(Keeping(hook.largest), hook.folder, hook.files, frozenset(hook.skip))
        store = Store(made / "files.db", days=30, most=hook.most)
        looking = FileTracker("s", store, limits, None)
        root = str(made / "work")
        began = time.perf_counter()
        looking.first([root])
        first = time.perf_counter() - began
        time.sleep(0.1)
        bare = least(lambda: walk(root))
        around = least(lambda: looking.end(looking.begin(None, [root]), [root]))
        watched = FileTracker("t", store, limits, Inotify())
        watched.first([root])
        told = least(lambda: watched.end(watched.begin(None, [root]), [root]))
        path = f"{root}/folder1/file1.py"

        def edit() -> None:
            moment = watched.begin([path], [root])
            Path(path).write_bytes(b"%d" % time.perf_counter_ns())
            watched.end(moment, [root])

        one = least(edit, 50)
        assert stamp_of(path) is not None
        print(f"to keep all {FOLDERS * FILES:,} files, once             {first:8.2f} s")
        print(f"a bare walk                                     {bare * 1000:8.1f} ms")
        print(f"around a command, two looks                     {around * 1000:8.1f} ms")
        print(f"a look beside a bare walk                       {around / 2 / bare:8.2f}")
        print(f"around a command, told by the kernel            {told * 1000:8.2f} ms")
        print(f"around an edit                                  {one * 1000:8.2f} ms")
        return int(one > EDIT or told > COMMAND or around / 2 / bare > RATIO)
    finally:
        shutil.rmtree(made)


if __name__ == "__main__":
    sys.exit(main())
