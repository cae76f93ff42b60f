"""Where the conversations of Claude Code and of Codex lie on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from crow.transcripts.reading import UnknownTranscriptError, read
from crow.transcripts.transcript import Transcript

PROGRAMS: Mapping[str, tuple[str, str, str]] = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", "projects/*/*.jsonl"),
    "codex": ("CODEX_HOME", ".codex", "sessions/*/*/*/rollout-*.jsonl"),
}
"""Of each program: the variable that names its folder, else that in the home; the files there."""


def files(home: Path, env: Mapping[str, str]) -> list[Path]:
    """The files of conversations, the latest first."""
    found: list[tuple[float, Path]] = []
    for variable, folder, pattern in PROGRAMS.values():
        root = Path(env.get(variable) or home / folder)
        for path in root.glob(pattern):
            try:
                found.append((path.stat().st_mtime, path))
            except OSError:
                continue
    return [path for _, path in sorted(found, reverse=True)]


def conversations(
    home: Path, env: Mapping[str, str], is_wanted: Callable[[Transcript], bool]
) -> Iterator[tuple[Path, Transcript]]:
    """The conversations that are wanted, the latest first; what cannot be read is passed over."""
    for path in files(home, env):
        try:
            made = read(path.read_text("utf-8", "replace"))
        except (OSError, UnknownTranscriptError):
            continue
        if isinstance(made, Transcript) and is_wanted(made):
            yield path, made


def named(home: Path, env: Mapping[str, str], start: str) -> list[Path]:
    """The files of conversations whose id begins so; each has its id in its name."""
    wanted = re.compile(rf"(?:^|-){re.escape(start)}[^{os.sep}]*\.jsonl$")
    return [path for path in files(home, env) if wanted.search(path.name)]
