"""The condition of a settings hook, its ``if``: true where one rule speaks of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from crow.extensions.permissions.permissions import Permissions
from crow.extensions.permissions.rules.pattern import PathPattern
from crow.extensions.permissions.rules.rule import PermissionRule, parse_rule


def applies(rule: str, tool: str, args: Mapping[str, Any], cwd: str) -> bool:
    """True where the rule means this call, and where that cannot be told.

    A malformed rule means every call: who wrote it wants something to run.
    """
    permissions = _alone(rule)
    if permissions is None or _may_hide(permissions.deny[0], args):
        return True
    return permissions.judge(tool, args, cwd=cwd).decision != "allow"


def _may_hide(rule: PermissionRule, args: Mapping[str, Any]) -> bool:
    """True where a pattern that says more than a command's name could be met by what expands."""
    if rule.tool != "Bash" or rule.specifier is None:
        return False
    words = rule.specifier.replace(":*", " *").split()
    command = str(args.get("command", ""))
    return len(words) > 1 and words[1:] != ["*"] and ("$" in command or "`" in command)


@lru_cache(256)
def _alone(text: str) -> Permissions | None:
    """Permissions that refuse what the rule means and allow the rest; None where it is malformed.

    Paths are meant as an allow rule means them: ``src/**`` is that of the call's directory.
    """
    try:
        rule = parse_rule(text, "deny")
        if rule.path is not None and rule.specifier is not None:
            rule = replace(rule, path=PathPattern.of(rule.specifier, strict=True))
    except ValueError:
        return None
    return Permissions(deny=(rule,), mode="bypassPermissions")
