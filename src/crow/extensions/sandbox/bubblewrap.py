"""Bubblewrap: a command in namespaces of its own, with the file system mounted as the policy says.

Each part of the line was attacked (``crow sandbox try`` does it again), and parts that look
needless are not. Without ``--cap-drop ALL`` root mounts everything writable again; with it root
still writes the kernel's own settings in ``/proc/sys``, as their owner. A read-only mount stops
nobody from connecting to a socket: the filter of system calls does.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self

from crow.extensions.sandbox.backend import GUARANTEES, Launch
from crow.extensions.sandbox.concurrent_writers import ConcurrentWriters
from crow.extensions.sandbox.fifo_guard import QUIET, guarded
from crow.extensions.sandbox.limits import limited
from crow.extensions.sandbox.mount_check import MountCheck
from crow.extensions.sandbox.mounts import PRIVATE, is_below, plan_mounts, settled
from crow.extensions.sandbox.orphans import Namespace
from crow.extensions.sandbox.policy import Policy, Proxy
from crow.extensions.sandbox.seccomp import INTERNET, Filter, assemble
from crow.extensions.sandbox.workspace_check import WorkspaceCheck

_ALONE = (
    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try "
    "--die-with-parent --new-session --cap-drop ALL"
).split()
_RUNS_LATER = (
    "What a command leaves in the workspace runs when you run it: Makefiles, tests, packages."
)
_PIPES = "Named pipes outside can be written to: only Landlock (Linux 5.19) and perl forbid that."


class Bubblewrap:
    """``bwrap``, where users may make namespaces.

    A version before 0.8 cannot forbid namespaces inside (``is_old``); the filter does so alone.
    ``perl`` guards named pipes, where the kernel has Landlock.
    """

    name = "bubblewrap"

    def __init__(self, program: str, *, is_old: bool = False, perl: str = "") -> None:
        self.program, self._is_old, self._perl = program, is_old, perl
        self.about = ":".join([*["old"] * is_old, program, *[perl] * bool(perl)])
        self.holds = frozenset(GUARANTEES) - (frozenset() if perl else {"pipes"})
        self.holds_reading = self.holds

    @classmethod
    def known(cls, about: str) -> Self:
        """As it was made before, from what it said about itself."""
        program, _, perl = about.removeprefix("old:").partition(":")
        return cls(program, is_old=about.startswith("old:"), perl=perl)

    @property
    def does_not_hold(self) -> tuple[str, ...]:
        """What mounts cannot do, a line each."""
        return (
            _RUNS_LATER,
            *(() if self._perl else (_PIPES,)),
            "A protected path that is not there can be made; it is taken away after the command.",
        )

    @contextmanager
    def confine(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], policy: Policy
    ) -> Generator[Launch]:
        """Start it inside of bwrap."""
        policy = settled(policy)
        launch = Launch((), {**env, "TMPDIR": policy.tmp or PRIVATE[0]})
        with ExitStack() as stack:
            is_writing = policy.ring == "workspace"
            neighbours = stack.enter_context(ConcurrentWriters(is_writing=is_writing))
            stack.enter_context(WorkspaceCheck(policy, launch.found))
            namespace = Namespace()
            stack.enter_context(namespace.ended())
            launch.ask = namespace.ask
            files = _Descriptors(stack)
            files.all.append(namespace.telling)
            mounts = plan_mounts(policy, cwd)
            line = [self.program, *_file_system(mounts, policy, files), *_ALONE, *namespace.line]
            if any(how != "show" for _, how in mounts) and neighbours.are_there:
                waiting = MountCheck(mounts, launch, stack)
                files.all += list(waiting.files)
                line += waiting.line
            line += [] if policy.network == "host" else ["--unshare-net"]
            line += [] if self._is_old else ["--disable-userns"]
            line += ["--seccomp", files.data(assemble(Filter(families(policy))))]
            command = limited(argv, policy.limits)
            if self._perl and ("/", "write") not in mounts:
                written = [path for path, how in mounts if how == "write"]
                command = guarded(self._perl, argv, [*written, *PRIVATE], policy.limits)
                line += QUIET
            if isinstance(policy.network, Proxy):
                from crow.extensions.sandbox.proxy import Gate, environment

                gate = Gate(policy.network, launch.refused)
                stack.callback(gate.close)
                command = gate.line(command)
                files.all.append(gate.descriptor)
                launch.env = environment(launch.env)
            launch.argv = [*line, "--chdir", cwd, "--", *command]
            launch.pass_fds = tuple(files.all)
            yield launch


def families(policy: Policy) -> tuple[int, ...]:
    """The sockets that a command may open; without a network they lead to itself."""
    return () if policy.ring == "reading" and policy.network == "none" else INTERNET


class _Descriptors:
    """The descriptors that bwrap reads while it starts, closed with the stack."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.all: list[int] = []

    def data(self, content: bytes) -> str:
        """One to read this from."""
        number = os.memfd_create("crow-sandbox") if content else os.open(os.devnull, os.O_RDONLY)
        self._stack.callback(os.close, number)
        self.all.append(number)
        if content:
            os.write(number, content)
            os.lseek(number, 0, os.SEEK_SET)
        return str(number)


def _file_system(mounts: list[tuple[str, str]], policy: Policy, files: _Descriptors) -> list[str]:
    """The mounts of a policy as arguments; later ones win."""
    base = "--bind" if ("/", "write") in mounts else "--ro-bind"
    line = [base, "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if os.geteuid() == 0:  # owns the kernel's settings: `core_pattern` is run as root
        line += ["--remount-ro", "/proc"]
    for folder in PRIVATE:
        if os.path.isdir(folder) and not os.path.islink(folder):  # noqa: PTH112, PTH114
            line += _private(folder, policy)
    for path, how in mounts:
        if path != "/":
            shown = any(other != path and is_below(other, (path,)) for other, _ in mounts)
            line += _mount(path, how, shown, files)
    masked = [path for path, how in mounts if how == "mask" and os.path.isdir(path)]  # noqa: PTH112
    return line + [word for path in masked for word in ("--remount-ro", path)]


def _private(folder: str, policy: Policy) -> list[str]:
    """A folder that is a command's own, or the session's."""
    if folder == PRIVATE[0] and policy.tmp and not is_below(os.path.realpath(policy.tmp), [folder]):
        return ["--bind", policy.tmp, folder]
    return ["--tmpfs", folder]


def _mount(path: str, how: str, is_passed: bool, files: _Descriptors) -> list[str]:
    """One mount; a masked folder can be passed through where something below is not masked."""
    if how == "write":
        return ["--bind", path, path]
    if how != "mask":
        return ["--ro-bind", path, path]
    if os.path.isdir(path):  # noqa: PTH112
        return ["--perms", "0111" if is_passed else "0000", "--tmpfs", path]
    # not /dev/null, which is a device to git and tar
    return ["--perms", "0444", "--ro-bind-data", files.data(b""), path]
