"""A session's sandbox: what its commands may touch, and what is to be told of them afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crow import ToolResult
from crow.dataclasses import frozen
from crow.extensions.sandbox.finder import NOTHING, Finder

if TYPE_CHECKING:
    from crow import Session
    from crow.extensions.sandbox.backend import Backend
    from crow.extensions.sandbox.launcher import RingLauncher
    from crow.extensions.sandbox.policy import Limits, Policy, Ring
    from crow.project import SandboxSettings

NEEDED = frozenset({"write", "protected", "network", "processes"})
"""What a back end must hold, or commands are asked about as if there was none."""
LEAST = frozenset({"write", "network"})
"""The same, where somebody has said that commands need no question."""
TRIED = frozenset({"write", "attributes", "network", "processes", "secrets"})
"""What the reading ring must hold, or nothing is tried in it that is not known to read only."""
RINGS = """\
- reading: what runs unasked because it only reads. Nothing can be written but a temporary folder;
  no network, no secrets, little of the environment.
- workspace: all else. The session's folders and a temporary one can be written, without settings,
  git's hooks and other files that run by themselves; {network}.
- outside: what you or a rule have let out. As you."""


@frozen
class Wishes:
    """The wishes for a sandbox: the settings of it, the permission rules, the limits."""

    settings: SandboxSettings
    rules: Any
    limits: Any


class SessionSandbox:
    """The sandbox that the commands of one session run in; a `crow.keys.Sandbox`.

    ``root`` is that of the session which a sub-agent works for. `close` removes the temporary
    folder.
    """

    def __init__(
        self, session: Session, wishes: Wishes, finder: Finder, root: SessionSandbox | None = None
    ) -> None:
        self.wishes = wishes
        self.settings: SandboxSettings = wishes.settings
        self.finder = finder
        self.is_told_bare = False
        self.late: list[str] = []
        self.refused: set[str] = set()
        self.folder = ""
        self._session = session
        self._root = root

    # what it is

    @property
    def is_on(self) -> bool:
        """False where the user has switched it off for this session."""
        return self._session.root.options.get("sandbox") is not False or self.settings.required

    @property
    def backend(self) -> Backend:
        """What holds commands; looked for at the first call, which blocks meanwhile."""
        return self.finder.find()

    @property
    def name(self) -> str:
        """What holds them; empty where nothing does."""
        if not self.is_on or self.backend.name == NOTHING:
            return ""
        return self.backend.name

    @property
    def unasked(self) -> bool:
        """True where commands that stay inside need no question."""
        said = self.settings.unasked
        needed = LEAST if said else NEEDED
        return said is not False and bool(self.name) and needed <= self.backend.holds

    @property
    def reads(self) -> bool:
        """True where a command may be tried in the reading ring."""
        said = self.settings.unasked
        return said is not False and bool(self.name) and self.backend.holds_reading >= TRIED

    def has_refused(self, command: str) -> bool:
        """True for a command to which the reading ring has refused something."""
        return command in self.refused

    @property
    def over_ask(self) -> bool:
        """True where somebody has said that commands need no question."""
        return self.settings.unasked is True

    @property
    def escapes(self) -> bool:
        """True where a call may ask to run outside."""
        return self.settings.escapes

    @property
    def excluded(self) -> Sequence[str]:
        """Commands that run outside by themselves."""
        return self.settings.excluded

    @property
    def line(self) -> str:
        """It in a line, as far as it is known by now."""
        return self.finder.line if self.is_on else "switched off in this session"

    @property
    def lines(self) -> Iterator[str]:
        """It in full, for people. May block."""
        if not self.is_on:
            yield "Commands run without a sandbox: it is switched off in this session."
            return
        if not self.name:
            how = "Commands run without a sandbox, with all that you may do"
            refused = "No command runs: sandbox.required is set, and no sandbox works here"
            yield f"{refused if self.settings.required else how}: {self.finder.why}."
            return
        yield f"Commands run in a sandbox: {self.name}."
        domains = ", ".join(self.settings.allowed_domains)
        network = f"of the network only {domains}" if domains else "no network"
        yield from ("", RINGS.format(network=network), "")
        yield (
            "Commands that stay inside need no question."
            if self.unasked
            else "Commands are asked about as if there was none."
        )
        if self.backend.does_not_hold:
            yield from ("", "It does not hold:", "")
            yield from (f"- {line}" for line in self.backend.does_not_hold)

    # running

    def launcher(self, ring: Ring | Literal["outside"], *, is_named: bool = False) -> RingLauncher:
        """Confines the programs of one call, or those whose environment somebody has named."""
        from crow.extensions.sandbox.launcher import RingLauncher

        return RingLauncher(self, ring, is_named=is_named)

    def policy(self, ring: Ring) -> Policy:
        """What a command may touch now."""
        from crow.extensions.sandbox.paths import Around, policy

        wishes = self.wishes
        around = Around(ring, self._session.roots, self.tmp, self.limits)
        return policy(wishes.settings, wishes.rules, around)

    @property
    def limits(self) -> Limits:
        """How much a command may use, wherever it runs."""
        from crow.extensions.sandbox.limits import limits_of

        return limits_of(self.wishes.limits)

    @property
    def tmp(self) -> str:
        """The session's own temporary folder, made when it is first wanted; sub-agents share it."""
        if self._root is not None:
            return self._root.tmp
        if not self.folder or not Path(self.folder).is_dir():
            from crow.project import state_directory

            folder = state_directory() / "tmp"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sweep(folder)
            import tempfile

            self.folder = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=folder)
        return self.folder

    def follow(self, before: SessionSandbox | None) -> None:
        """Go on in the place of another one, whose temporary folder stays."""
        if before is not None:
            self.refused = before.refused
            self.folder, before.folder = before.folder, ""

    def close(self) -> None:
        """Remove the temporary folder."""
        if self.folder:
            import shutil

            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = ""

    # telling

    def annotated(self, command: str, result: ToolResult, launcher: RingLauncher) -> ToolResult:
        """A command's result with what the model must know: what the ring refused or put back."""
        from crow.extensions.sandbox.denial import AGAIN, denial
        from crow.extensions.sandbox.limits import hit

        launcher.is_over = True
        lines = [*self._taken_late(), *launcher.found]
        if result.error and (met := hit(result.text, self.limits)) is not None:
            lines.append(met)
        elif (refused := denial(result, launcher, escapes=self.escapes)) is not None:
            lines.append(refused)
            if refused.endswith(AGAIN):
                self.refused.add(command)
        return noted(result, lines)

    def told_late(self, result: ToolResult) -> ToolResult:
        """A result with what was found since the last one."""
        return noted(result, self._taken_late())

    def _taken_late(self) -> list[str]:
        late, self.late = self.late, []
        return late


def sweep(folder: Path) -> None:
    """Remove the temporary folders of processes that have died."""
    import shutil

    for path in folder.iterdir():
        pid = path.name.partition("-")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists() and Path("/proc/self").exists():
            shutil.rmtree(path, ignore_errors=True)


def noted(result: ToolResult, lines: Sequence[str]) -> ToolResult:
    """A result with lines behind its text."""
    if not lines or not isinstance(result.content, str):
        return result
    return replace(result, content="\n".join([result.content, *(f"[{line}]" for line in lines)]))
