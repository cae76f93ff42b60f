"""The folders on this machine with conversations of Claude Code, Codex, opencode and pi."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from crow.core.support.frozen import frozen
from crow.transcripts.opencode import exported, sessions
from crow.transcripts.reading import UnknownTranscriptError, read
from crow.transcripts.transcript import Transcript

PROGRAMS: Mapping[str, tuple[str, str, str]] = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", "projects/*/*.jsonl"),
    "codex": ("CODEX_HOME", ".codex", "sessions/*/*/*/rollout-*.jsonl"),
    "pi": ("PI_CODING_AGENT_DIR", ".pi/agent", "sessions/*/*.jsonl"),
    "opencode": ("XDG_DATA_HOME", ".local/share", "opencode/opencode.db"),
}
"""Of each program: the variable that names its folder, else that in the home; the files there."""


@frozen
class Found:
    """A conversation's place, and when it was used last; ``id`` is that of one of many in a file.

    ``text`` is what its program wrote, or exports; it raises ``OSError``.
    """

    at: float
    path: Path
    id: str = ""

    @property
    def text(self) -> str:
        """The whole of it."""
        return exported(self.path, self.id) if self.id else self.path.read_text("utf-8", "replace")

    def begins(self, start: str) -> bool:
        """True where its id begins so; a file has it in its name."""
        if self.id:
            return self.id.startswith(start)
        return bool(re.search(rf"(?:^|[-_]){re.escape(start)}[^/]*\.jsonl$", self.path.name))


def files(home: Path, env: Mapping[str, str]) -> list[Found]:
    """The conversations, the latest first."""
    found: list[Found] = []
    for variable, folder, pattern in PROGRAMS.values():
        root = Path(env.get(variable) or home / folder)
        for path in root.glob(pattern):
            if path.suffix == ".db":
                found += [Found(at, path, id_) for id_, at in sessions(path)]
                continue
            try:
                found.append(Found(path.stat().st_mtime, path))
            except OSError:
                continue
    return sorted(found, key=lambda each: (each.at, str(each.path), each.id), reverse=True)


def conversations(
    home: Path, env: Mapping[str, str], is_wanted: Callable[[Transcript], bool]
) -> Iterator[tuple[Path, Transcript]]:
    """The conversations that are wanted, the latest first; what cannot be read is passed over."""
    for each in files(home, env):
        try:
            made = read(each.text)
        except (OSError, UnknownTranscriptError):
            continue
        if isinstance(made, Transcript) and is_wanted(made):
            yield each.path, made


def named(home: Path, env: Mapping[str, str], start: str) -> list[Found]:
    """The conversations whose id begins so."""
    return [each for each in files(home, env) if each.begins(start)]
