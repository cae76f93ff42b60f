"""Landlock and seccomp: a thread gives up its rights and starts the command, which inherits that.

It needs no package, no privileges and no namespaces. But it can only allow: what lies in a folder
that may be written cannot be taken back, so protected paths are looked at afterwards.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import stat
import struct
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial

from crow.extensions.sandbox.backend import Launch
from crow.extensions.sandbox.limits import limited
from crow.extensions.sandbox.mounts import is_below, settled
from crow.extensions.sandbox.policy import Policy
from crow.extensions.sandbox.seccomp import INTERNET, Filter, assemble
from crow.extensions.sandbox.survivors import Survivors
from crow.extensions.sandbox.workspace_check import WorkspaceCheck
from crow.process import mark_of

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_CAPABILITIES = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES = 0x20080522  # version 3
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_DEVICES_MADE = 1 << 6 | 1 << 11
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_SIGNALS = 6
_SCOPES = 1 | 2  # abstract sockets, signals
_NET = 1 | 2  # bind, connect
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_SOURCES = ("/dev/random", "/dev/urandom")
# the first version of the kernel's interface that knows a right
_SINCE = ((1, (1 << 13) - 1), (2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL))
_HELD = frozenset({"write", "pipes", "undone", "secrets", "network", "sockets", "kernel"})
_HELD_READING = frozenset({"attributes", "protected", "masked"})


class Landlock:
    """The kernel's own sandbox (Linux 5.13), better with 6.12."""

    name = "landlock"

    def __init__(self, abi: int) -> None:
        self.abi = abi
        self.about = str(abi)
        self._survivors = Survivors()
        self.holds = _HELD | {"processes"} if abi >= _SIGNALS else _HELD
        self.holds_reading = self.holds | _HELD_READING

    @property
    def does_not_hold(self) -> tuple[str, ...]:
        """What the kernel cannot do so, a line each."""
        old = (
            (2, "Files cannot be renamed from one folder to another."),
            (3, "Files outside can be emptied, though not written."),
            (_SIGNALS, "Processes outside can be sent signals."),
        )
        return (
            "Protected files in a workspace can be changed; they are restored after the command.",
            "Secret files in a workspace (.env) can be read when the command may write there.",
            "Modes, owners and times of files outside can be changed when the command may write.",
            "Processes outside are seen (ps).",
            "A process that hides on purpose ends with the last command, not if Crow is killed.",
            "No server can be started, not even for the command itself; no domain is reached.",
            *(line for since, line in old if self.abi < since),
        )

    @contextmanager
    def confine(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], policy: Policy
    ) -> Generator[Launch]:
        """Start it from a thread that has given up its rights."""
        del cwd
        policy = settled(policy)
        launch = Launch(limited(argv, policy.limits, mark_of(env)), env)
        with ExitStack() as stack:
            stack.enter_context(WorkspaceCheck(policy, launch.found, restores=True))
            self._survivors.begin()
            stack.callback(self._survivors.end)
            folder = policy.tmp or tempfile.mkdtemp(prefix="crow-")
            if not policy.tmp:
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
            launch.env = {**env, "TMPDIR": folder}
            launch.restrict = partial(self._restrict, policy, folder)
            yield launch

    def _restrict(self, policy: Policy, folder: str) -> None:
        """Give up the rights of the calling thread, for good."""
        forbid_privileges()
        restrict_files(self.abi, rules(policy, folder), policy.network == "host")
        families = INTERNET if policy.network == "host" else ()
        filter_calls(assemble(Filter(families, policy.ring == "reading", shared=True)))


def find_abi() -> int:
    """The version of the kernel's interface. Raises ``OSError`` where it has none."""
    return _call(_CREATE, None, 0, 1)


def rules(policy: Policy, folder: str) -> Iterator[tuple[str, int]]:
    """Real paths, and the rights below each."""
    yield "/", _LIST
    masked = ["/dev", *map(os.path.realpath, policy.hidden)]
    for path in (*_beside("/", masked), *map(os.path.realpath, policy.readable), *_SOURCES):
        yield path, _READ | _EXECUTE | _LIST
    for path in _DEVICES:
        yield path, _READ | _WRITE | _TRUNCATE | _IOCTL
    kept = [os.path.realpath(path) for path in policy.read_only if policy.writable]
    writable = [each for each in map(os.path.realpath, policy.writable) if not is_below(each, kept)]
    roots = policy.roots if policy.ring == "workspace" else ()
    for path in (*map(os.path.realpath, (*roots, folder)), *writable):
        yield path, ~_DEVICES_MADE


def _beside(folder: str, masked: Sequence[str]) -> Iterator[str]:
    """All that lies beside masked paths and the folders on the way to them; itself without any.

    Rights are for what is below a path: so each of the others is named, and these are not.
    """
    if folder in masked:
        return
    if not any(is_below(path, (folder,)) for path in masked):
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            names = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return
    for name in names:
        yield from _beside(name, masked)


def restrict_files(abi: int, allowed: Iterable[tuple[str, int]], is_online: bool) -> None:
    """Leave the calling thread these rights to files, and none to ports unless it is online."""
    rights = 0
    for since, bits in _SINCE:
        rights |= bits if abi >= since else 0
    parts = [rights, 0 if is_online else _NET, _SCOPES]
    sizes = ((_SIGNALS, 3), (4, 2), (1, 1))
    size = next(count for since, count in sizes if abi >= since)
    attributes = struct.pack(f"={size}Q", *parts[:size])
    ruleset = _call(_CREATE, attributes, len(attributes), 0)
    try:
        for path, wanted in allowed:
            _allow(ruleset, path, wanted & rights)
        _call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Rights below a real path; one that is not there has none, nor what a link leads to by now."""
    try:
        number = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if os.readlink(f"/proc/self/fd/{number}") != path:  # noqa: PTH115
            return
        if not stat.S_ISDIR(os.fstat(number).st_mode):
            rights &= _OF_FILES
        _call(_ADD, ruleset, 1, struct.pack("=Qi", rights, number), 0)
    finally:
        os.close(number)


def filter_calls(code: bytes) -> None:
    """Run this filter before each system call of the calling thread, from now on."""
    steps = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(steps))
    _call(_SECCOMP[platform.machine()], 1, 0, program)


def forbid_privileges() -> None:
    """Take root's capabilities from the calling thread, and all ways to new ones."""
    header, none = struct.pack("=Ii", _CAPABILITIES, 0), bytes(24)
    _call(_SET_CAPABILITIES[platform.machine()], header, none)
    libc = _libc()
    zero = ctypes.c_ulong(0)
    if libc.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero):
        _fail()


def _call(number: int, *args: int | bytes | None) -> int:
    """A system call. Raises ``OSError``."""
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in args]
    answer = _libc().syscall(ctypes.c_long(number), *passed)
    if answer < 0:
        _fail()
    return answer


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _fail() -> None:
    number = ctypes.get_errno() or errno.EIO
    raise OSError(number, os.strerror(number))
