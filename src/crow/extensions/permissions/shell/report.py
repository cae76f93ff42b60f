"""The report of one pass over a shell script."""

from __future__ import annotations

from dataclasses import dataclass, field

from crow.extensions.permissions.paths.files import Finding


@dataclass(slots=True)
class Report:
    """A report on one pass. ``uncovered`` says why the script may not run unasked.

    ``by_mode`` tells that nothing but a mode that accepts edits covers a part of it. ``secret``
    names a variable that it would show, be it in a text that is evaluated. ``writes`` tells that
    its output, or what it edits, goes to files.
    """

    deny: Finding | None = None
    ask: Finding | None = None
    guard: str | None = None
    critical: str | None = None
    doubt: str | None = None
    by_mode: bool = False
    writes: bool = False
    secret: str | None = None
    uncovered: str | None = None
    rules: list[str] = field(default_factory=list[str])

    @property
    def is_free(self) -> bool:
        """Whether nothing was found that refuses, or wants the user asked."""
        return not (self.deny or self.ask or self.guard or self.critical)

    def note(self, finding: Finding) -> bool:
        """Keep a finding about a path; whether the path is fine."""
        match finding.kind:
            case "deny":
                self.deny = self.deny or finding
            case "ask":
                self.ask = self.ask or finding
            case "guard":
                self.guard = self.guard or finding.reason
            case "none":
                self.miss(finding.reason)
            case "allow":
                return True
        return False

    def miss(self, reason: str) -> None:
        """Something that nothing covers."""
        self.uncovered = self.uncovered or reason

    def suspect(self, reason: str) -> None:
        """Something behind which a denied command could hide."""
        self.doubt = self.doubt or reason
        self.miss(reason)
