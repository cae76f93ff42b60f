"""Seatbelt: macOS's ``sandbox-exec``, with a profile made of the policy.

Written from documentation and from how others use it; it was never tried on a Mac.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath

from crow.extensions.sandbox.backend import Launch
from crow.extensions.sandbox.limits import limited
from crow.extensions.sandbox.mounts import is_below, settled
from crow.extensions.sandbox.policy import Policy
from crow.extensions.sandbox.workspace_check import WorkspaceCheck

_BASE = """(version 1)
(deny default (with message "crow"))
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow file-ioctl (literal "/dev/null") (literal "/dev/tty"))
(allow file-read*)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.trustd.agent"))
"""
_NETWORK = "(allow network*)\n(allow system-socket)\n"


class Seatbelt:
    """``sandbox-exec``, which macOS calls deprecated and everybody uses."""

    name = "seatbelt"
    holds = frozenset({"write", "protected", "undone", "secrets", "masked", "network"})
    holds_reading = holds
    does_not_hold: tuple[str, ...] = (
        "It was written from documentation and never tried: see for yourself (crow sandbox try).",
        "Processes outside are seen, and a command can leave processes behind.",
        "Apple Events and the services of the system are only partly closed.",
    )

    def __init__(self, program: str) -> None:
        self.program = self.about = program

    @contextmanager
    def confine(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], policy: Policy
    ) -> Generator[Launch]:
        """Start it under a profile."""
        del cwd
        policy = settled(policy)
        line = [self.program, "-p", profile(policy), *limited(argv, policy.limits)]
        launch = Launch(line, {**env, "TMPDIR": policy.tmp} if policy.tmp else env)
        with WorkspaceCheck(policy, launch.found):
            yield launch


def profile(policy: Policy) -> str:
    """A policy in the language of profiles; of the rules for one operation the last one counts."""
    roots = policy.roots if policy.ring == "workspace" else ()
    tmp = (policy.tmp,) if policy.tmp else ()
    written = _real((*roots, *policy.writable, *tmp))
    kept, masked = _real(policy.read_only), _real(policy.hidden)
    lines = [
        _BASE,
        _rule("allow", "file-write*", "subpath", written),
        _rule("deny", "file-write*", "subpath", kept),
        _rule("deny", "file-write-unlink", "subpath", kept),
        # a folder on the way cannot be renamed, or another one would be put in its place
        _rule("deny", "file-write-unlink", "literal", _ways(kept, written)),
        _rule("deny", "file-read* file-write*", "subpath", masked),
        _rule("allow", "file-read*", "subpath", _real(policy.readable)),
        _NETWORK if policy.network == "host" else "",
    ]
    return "".join(lines)


def _rule(verb: str, operations: str, kind: str, paths: Iterable[str]) -> str:
    quoted = "".join(f"\n  ({kind} {_quoted(path)})" for path in paths)
    return f"({verb} {operations}{quoted})\n" if quoted else ""


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _real(paths: Iterable[str]) -> list[str]:
    """Real paths (``/tmp`` is ``/private/tmp``), also of what is not there."""
    return [os.path.realpath(path) for path in paths]


def _ways(kept: Iterable[str], written: Sequence[str]) -> list[str]:
    """The folders between what may be written and what may not in it."""
    parents = (str(each) for path in kept for each in PurePath(path).parents)
    return sorted({path for path in parents if is_below(path, written)})
