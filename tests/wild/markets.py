"""Plugins of public marketplaces, as data: what each brings, and what may be said of it."""

from __future__ import annotations

from crow.core.support.frozen import frozen


@frozen
class Offer:
    """A plugin of a marketplace.

    ``brings`` is what `crow plugin` lists. ``said`` is the one line for the person that there may
    be, which names what they can do; ``refused`` why there is nothing to have. ``untyped``
    are commands that are not typed: they go on by themselves, or have an awk's ``$1``.
    ``tool`` is one of a server's, of which the first request tells.
    """

    name: str
    brings: str = ""
    said: str = ""
    refused: str = ""
    untyped: tuple[str, ...] = ()
    tool: str = ""


OFFERS: dict[str, tuple[Offer, ...]] = {
    "anthropics/claude-code": (
        Offer("agent-sdk-dev", "1 command, 2 agents"),
        Offer("claude-opus-4-5-migration", "1 skill"),
        Offer("code-review", "1 command"),
        Offer("commit-commands", "3 commands", untyped=("commit-commands:clean_gone",)),
        Offer("explanatory-output-style", "1 hook"),
        Offer("feature-dev", "1 command, 3 agents"),
        Offer("frontend-design", "1 skill"),
        Offer("hookify", "4 hooks, 1 skill, 4 commands, 1 agent"),
        Offer("learning-output-style", "1 hook"),
        Offer("plugin-dev", "7 skills, 1 command, 3 agents"),
        Offer("pr-review-toolkit", "1 command, 6 agents"),
        Offer("ralph-wiggum", "1 hook, 3 commands", untyped=("ralph-wiggum:ralph-loop",)),
        Offer("security-guidance", "6 hooks"),
    ),
    "anthropics/claude-plugins-official": (
        Offer("claude-code-setup", "1 skill"),
        Offer("claude-md-management", "1 skill, 1 command"),
        Offer("claude-security", "1 hook, 1 skill, 7 agents"),
        Offer("code-modernization", "10 commands, 8 agents"),
        Offer("code-simplifier", "1 agent"),
        Offer("cwc-makers", "2 skills, 1 command"),
        Offer("github", "1 server", said="the environment has no GITHUB_PERSONAL_ACCESS_TOKEN"),
        Offer("hookify", "4 hooks, 1 skill, 4 commands, 1 agent"),
        Offer("laravel-boost", "1 server", said="there is no program or directory 'php'"),
        Offer("mcp-server-dev", "3 skills"),
        Offer("math-olympiad", "1 skill"),
        Offer("playwright", "1 server", tool="mcp__plugin_playwright_playwright__browser_navigate"),
        Offer("plugin-dev", "7 skills, 1 command, 3 agents"),
        Offer("ralph-loop", "1 hook, 3 commands", untyped=("ralph-loop:ralph-loop",)),
        Offer("receipts", "1 skill"),
        Offer("session-report", "1 skill"),
        Offer("security-guidance", "9 hooks"),
        Offer("skill-creator", "1 skill"),
        Offer("pyright-lsp", refused="it brings language servers alone (pyright)"),
        Offer("typescript-lsp", refused="it brings language servers alone (typescript)"),
    ),
    "wshobson/agents": (
        Offer("backend-development", "9 skills, 1 command, 8 agents"),
        Offer("git-pr-workflows", "3 commands, 1 agent"),
    ),
    "obra/superpowers": (Offer("superpowers", "1 hook, 14 skills"),),
    "EveryInc/compound-engineering-plugin": (Offer("compound-engineering", "33 skills"),),
    "kenryu42/claude-code-safety-net": (Offer("safety-net", "1 hook, 2 skills"),),
    "OthmanAdi/planning-with-files": (Offer("planning-with-files", "6 skills, 13 commands"),),
    "Dev-GOM/claude-code-marketplace": (
        Offer("ai-pair-programming", "4 hooks, 5 commands, 4 agents"),
        Offer("unity-dev-toolkit", "7 skills, 3 commands, 4 agents"),
    ),
    "pchalasani/claude-code-tools": (
        Offer("safety-hooks", "5 hooks"),
        Offer("aichat", "1 hook, 2 skills, 1 command, 1 agent"),
    ),
    "karanb192/claude-code-hooks": (Offer("bounty-board"), Offer("context-hogs")),
    "trailofbits/skills": (Offer("differential-review"), Offer("static-analysis")),
}
