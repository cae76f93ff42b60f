"""The decision on a call, and how strict that is."""

from __future__ import annotations

from typing import Literal

from crow.dataclasses import frozen
from crow.extensions.permissions.paths.files import Finding

ORDER = ("deny", "ask", "guard", "none", "allow")


@frozen
class Decision:
    """May it run? ``rule`` is the rule that says so, as it was written.

    ``default`` marks a question that no rule wants, only the mode: a hook's allow may answer it.
    Where the mode is dontAsk, it marks the refusal that stands in for such a question. ``secret``
    tells that a command would show a secret wherever it runs. ``ring`` is how far it may reach;
    where nothing confines it, that is said of what only reads alone.
    """

    decision: Literal["allow", "ask", "deny"]
    reason: str
    rule: str | None = None
    default: bool = False
    secret: bool = False
    ring: Literal["", "reading", "workspace", "outside"] = ""


def strictness(decision: Decision) -> tuple[int, bool]:
    """What sorts decisions, the strictest first."""
    return ("deny", "ask", "allow").index(decision.decision), decision.default


def worst_of(findings: list[Finding]) -> Finding:
    """The strictest of some findings."""
    return min(findings, key=lambda one: ORDER.index(one.kind))


def of_finding(finding: Finding, *, bypass: bool) -> Decision:
    """What a finding about a path means for the call; ``bypass`` is the mode that asks nothing."""
    match finding.kind:
        case "deny":
            return Decision("deny", finding.reason, finding.rule)
        case "ask":
            return Decision("ask", finding.reason, finding.rule)
        case "guard":
            return Decision("ask", finding.reason, default=bypass)
        case "allow":
            return Decision("allow", finding.reason, finding.rule)
        case "none":
            return Decision("ask", finding.reason, default=True)
