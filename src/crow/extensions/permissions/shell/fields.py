"""Fields of a command's call by which it would do what its text does not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from crow.extensions.permissions.paths.arguments import CWDS, plain_name
from crow.extensions.permissions.shell.builtin import is_safe
from crow.extensions.permissions.shell.script import Assignment, Text, Word

STEERING = frozenset(
    "env environ environment envs envvars variables shell executable interpreter user uid stdin "
    "input preexec".split()
)
"""What would make a command another one than its text says."""


def steering(args: Mapping[str, Any]) -> str | None:
    """The field of a command's call by which it would do what its text does not say.

    That is a directory that is no text, and variables beyond those that are harmless.
    """
    for name, value in args.items():
        plain = plain_name(name)
        moves = plain in CWDS and not isinstance(value, str)
        if value and (moves or (plain in STEERING and not _is_harmless(value))):
            return name
    return None


def _is_harmless(value: Any) -> bool:
    """Whether a value is variables that a command may have before it, too."""
    if not isinstance(value, Mapping):
        return False
    variables = cast("Mapping[str, Any]", value)
    return all(
        isinstance(one, str) and is_safe(Assignment(name, Word((Text(one, quoted=True),))))
        for name, one in variables.items()
    )
