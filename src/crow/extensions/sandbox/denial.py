"""Telling a command that failed from one that the sandbox refused, and saying so in a line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crow import ToolResult

if TYPE_CHECKING:
    from crow.extensions.sandbox.launcher import RingLauncher
    from crow.extensions.sandbox.policy import Policy

REFUSAL = re.compile(
    r"read-only file system|permission denied|operation not permitted|device or resource busy"
    r"|unable to unlink old|invalid cross-device link|\bE(?:ROFS|ACCES|PERM|BUSY|XDEV)\b",
    re.IGNORECASE,
)
OFFLINE = re.compile(
    r"could not resolve|name or service not known|temporary failure in name resolution"
    r"|network is unreachable|no address associated|nodename nor servname"
    r"|\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b|CONNECT tunnel failed|failed to establish a new conn"
    r"|dns error|getaddrinfo|unable to access 'https?:|no route to host",
    re.IGNORECASE,
)
HOST = re.compile(
    r"(?:host(?:name)?:? |//|addrinfo \w+ )['\"]?([a-z0-9-]+(?:\.[a-z0-9-]+)+)", re.IGNORECASE
)
CODE = re.compile(r"Exit code (\d+)")
PATH = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"|([^\s:'\"()\[\]]*/[^\s:'\"()\[\],]*|[\w.-]+)")
_UNQUOTED = 3  # the group of it
NO_NETWORK = "do without it"
IN_PLACE = "write in the project or in $TMPDIR"
AGAIN = "only $TMPDIR is written there; once more, the same command asks for the workspace ring"
OUT = "set dangerouslyDisableSandbox and give the reason in description"
ASK = "ask the user to run it"
UNHEARD = frozenset({2, 127})
"""Ends of commands that were used wrongly, or are not there."""
KILLED = 159
"""The end by SIGSYS: a system call that is filtered."""


def denial(result: ToolResult, launcher: RingLauncher, *, escapes: bool) -> str | None:
    """The line for the model about what a ring has refused; None where it refused nothing."""
    policy, text = launcher.policy, result.text
    code = CODE.match(text)
    if policy is None or code is None:
        return None
    printed = text[code.end() :].strip()
    if printed.startswith("bwrap: "):
        launcher.look_again()
        return "the sandbox itself could not start this command; try it once more"
    is_secret = False
    if host := _refused_host(printed, launcher, policy):
        what, inside = f"refused {host}", NO_NETWORK
    elif path := _refused_path(printed, launcher, policy):
        what, inside = f"refused access to {path}", IN_PLACE
        is_secret = _is_below(path, policy.hidden)
    elif int(code[1]) == KILLED or _is_perhaps(printed, int(code[1])):
        what, inside = "may have refused something", IN_PLACE
    else:
        return None
    if launcher.ring == "reading" and not is_secret:
        return f"the sandbox's reading ring {what}: {AGAIN}"
    out = OUT if escapes else ASK
    return f"the sandbox's {launcher.ring} ring {what}; a retry fails too: {inside}, or {out}"


def _is_perhaps(printed: str, code: int) -> bool:
    return code not in UNHEARD and REFUSAL.search(printed) is not None


def _refused_host(printed: str, launcher: RingLauncher, policy: Policy) -> str | None:
    """The network that was refused for certain."""
    if hosts := launcher.refused_hosts:
        return f"the network to {', '.join(hosts)}"
    if policy.network == "none" and (offline := OFFLINE.search(printed)):
        host = HOST.search(_line_at(printed, offline.start())[0])
        return f"the network to {host[1]}" if host else "the network"
    return None


def _refused_path(printed: str, launcher: RingLauncher, policy: Policy) -> str | None:
    """The path that was refused for certain."""
    for refusal in REFUSAL.finditer(printed):
        line, place = _line_at(printed, refusal.start())
        for named in _paths(line, range(place, place + len(refusal[0])), launcher.cwd):
            if _is_refused(path := _led(named, policy.roots), policy):
                return path
    return None


def _line_at(text: str, place: int) -> tuple[str, int]:
    """The line around a place, and the place in it."""
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    return text[start : end if end >= 0 else len(text)], place - start


def _paths(line: str, message: range, cwd: str) -> Iterator[str]:
    """The paths that a line may name, absolute; the message in it names none.

    Those that look like paths come first, then what stands in quotes, then what is near.
    """
    found = [
        (
            "/" not in match[0],
            match.lastindex == _UNQUOTED,
            abs(match.start() - message.start),
            text,
        )
        for match in PATH.finditer(line)
        if match.start() not in message and (text := match[match.lastindex or 0])
    ]
    for *_, text in sorted(found):
        yield os.path.normpath(Path(cwd, os.path.expanduser(text)))


def _led(path: str, roots: Sequence[str]) -> str:
    """Where a link in a root leads out of it, the place that it leads to."""
    if not _is_below(path, (*roots,)):
        return path
    real = os.path.realpath(path)
    return path if _is_below(real, tuple(map(os.path.realpath, roots))) else real


def _is_refused(path: str, policy: Policy) -> bool:
    """True for what the ring does not let a command have, and its user may."""
    if _is_below(path, policy.hidden) and not _is_below(path, policy.readable):
        return os.access(path, os.R_OK)
    written = policy.writable if policy.ring == "reading" else (*policy.roots, *policy.writable)
    is_held = _is_below(path, policy.read_only) or not _is_below(path, (*written, policy.tmp))
    if not is_held:
        return False
    place = path if os.path.lexists(path) else str(Path(path).parent)
    return os.path.isdir(Path(place).parent) and os.access(place, os.W_OK)  # noqa: PTH112


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in folders if one)
