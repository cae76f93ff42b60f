"""The mounts of a command, planned: what of the file system it finds by a policy, and how."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from crow.extensions.sandbox.policy import Policy

PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - where others have their files and sockets
_RESOLVER = "/etc/resolv.conf"
# a mount is needed where what is around it is mounted so; "" is the rest, which is read-only
_NEEDED = {
    "write": ("", "show", "keep", "mask", "private"),
    "show": ("write", "mask", "private"),
    "keep": ("write",),
    "mask": ("", "write", "show", "keep"),
}


def plan_mounts(policy: Policy, cwd: str) -> list[tuple[str, str]]:
    """Real paths that are there, parents before children, each with what becomes of it.

    ``write`` may be written, ``show`` read wherever it lies, ``keep`` not written where it could
    be, ``mask`` not read. All else is read-only, and `PRIVATE` folders are empty.
    """
    is_written = policy.ring == "workspace" or policy.writable
    kept, masked = _real(policy.read_only if is_written else ()), _real(policy.masked)
    named = _real(policy.by_name)
    writable = [path for path in _real(policy.writable) if not is_below(path, kept)]
    seen = (*policy.readable, *((_RESOLVER,) if policy.network == "host" else ()))
    shown = _real((*unled((cwd,), policy), *seen))
    wanted = {path: "show" for path in shown if is_below(path, (*PRIVATE, *masked, *named))}
    wanted |= dict.fromkeys(writable, "write")
    wanted |= dict.fromkeys(_real(policy.roots), "write" if policy.ring == "workspace" else "show")
    wanted |= dict.fromkeys(_real([policy.tmp]), "write") if policy.tmp else {}
    wanted |= {path: "show" if path in wanted else "keep" for path in kept}
    wanted |= dict.fromkeys(named, "mask") | dict.fromkeys(masked, "mask")
    return list(_needed(wanted, frozenset(named)))


def settled(policy: Policy) -> Policy:
    """A policy in which no link that a command may have made leads out of what it may write."""
    return replace(
        policy,
        roots=unled(policy.roots, policy),
        writable=unled(policy.writable, policy),
        readable=unled(policy.readable, policy),
    )


def unled(paths: Iterable[str], policy: Policy) -> tuple[str, ...]:
    """Those of the paths that no link leads out of a folder that commands write."""
    tops = [path for path in (*policy.roots, *policy.writable, policy.tmp) if path]
    found: list[str] = []
    for path in paths:
        around = [real(top) for top in tops if top != path and is_below(path, (top,))]
        if not around or all(is_below(real(path), (top,)) for top in around):
            found.append(path)
    return tuple(found)


def is_below(path: str, folders: Iterable[str]) -> bool:
    """True for one of the folders, and for what lies in one of them."""
    for folder in folders:
        if path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/"):
            return True
    return False


def real(path: str) -> str:
    """The real path; empty where it changes while it is looked at.

    The kernel knows that of what is there, in a tenth of the time.
    """
    try:
        return _opened(path) or os.path.realpath(path)
    except OSError:
        return ""


def _opened(path: str) -> str:
    """The real path of what can be opened; empty for what cannot, or is gone by then."""
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, AttributeError, ValueError):  # elsewhere than on Linux there is no O_PATH
        return ""
    try:
        found = os.readlink(f"/proc/self/fd/{file}")  # noqa: PTH115
    except OSError:
        return ""
    finally:
        os.close(file)
    return "" if found.endswith(" (deleted)") or not found.startswith("/") else found


def _real(paths: Iterable[str]) -> list[str]:
    """The real paths of those that are there."""
    found = (real(path) for path in paths if os.path.exists(path))  # noqa: PTH110
    return [path for path in found if path]


def _needed(wanted: dict[str, str], movable: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Those that change something, and the folders on the way to what may not be touched.

    A folder that only contains mounts can be renamed, and another one put in its place; one that
    is mounted itself cannot.
    """
    kept: dict[str, str] = dict.fromkeys(PRIVATE, "private")
    for path in sorted(wanted, key=_depth):
        above = next((each for each in _around(path) if each in kept), "")
        around = kept.get(above, "")
        if around not in _NEEDED[wanted[path]]:
            continue
        if wanted[path] in ("keep", "mask") and around == "write" and path not in movable:
            for pin in reversed(_around(path)[1:]):
                if pin not in kept and is_below(pin, (above,)):
                    kept[pin] = "write"
                    yield pin, "write"
        kept[path] = wanted[path]
        yield path, wanted[path]


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def _around(path: str) -> list[str]:
    """The path, a real one, and the folders around it, the inner ones first."""
    found = [path]
    while path != "/":
        path = path[: path.rindex("/")] or "/"
        found.append(path)
    return found
