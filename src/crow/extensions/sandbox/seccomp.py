"""The system calls that a confined command is refused: a table, and the filter made of it.

The kernel runs the filter (classic BPF) before each system call. What is not in the table is
allowed; what it refuses answers EPERM, as if there were no right to it.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Iterable
from functools import cache

from crow.dataclasses import frozen

_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _ARCH, _ARGS = 0, 4, 16  # offsets in what a filter sees
_X32 = 0x40000000
_NAMESPACES = 0x7E020000  # of clone's flags
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: ioctls that type into a terminal
_LOCAL_PAIRS = (1, 5)  # stream, seqpacket; a datagram or raw socket sends to any path

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # and column below
INTERNET = (socket.AF_INET, socket.AF_INET6)

# name: (x86_64, aarch64); None where an architecture has no such call
ALWAYS = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "open_by_handle_at": (304, 265),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
# what the file system cannot refuse where nothing is mounted read-only
ATTRIBUTES = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
# what reaches other processes of the same user where they share a namespace
SHARED = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
# (x86_64, aarch64, which argument names the process): refused unless it is 0, the caller
OTHERS = {
    "prlimit64": (302, 261, 0),
    "setpriority": (141, 140, 1),
    "ioprio_set": (251, 30, 1),
    "sched_setparam": (142, 118, 0),
    "sched_setscheduler": (144, 119, 0),
    "sched_setaffinity": (203, 122, 0),
    "sched_setattr": (314, 274, 0),
}
# the first argument by which 0 means all processes of the caller's user
OF_USER = {"setpriority": 2, "ioprio_set": 3}
# ioctls of file systems, by their second byte: they change files that are open for reading (flags,
# verity), or make and remove some (btrfs), past Landlock; but for those that read or that copy
FILE_IOCTLS = tuple(kind << 8 for kind in (ord("f"), ord("X"), ord("v"), 0x94, 0xF5))
HARMLESS_IOCTLS = {
    "FS_IOC_GETFLAGS": 0x80086601,
    "FS_IOC_FIEMAP": 0xC020660B,
    "FS_IOC_FSGETXATTR": 0x801C581F,
    "FS_IOC_GETVERSION": 0x80087601,
    "FICLONE": 0x40049409,
    "FICLONERANGE": 0x4020940D,
    "FIDEDUPERANGE": 0xC0189436,
}


@frozen
class Filter:
    """A filter of system calls: what to refuse beside what is always refused.

    ``families`` are the sockets that stay allowed. ``attributes`` refuses to change modes, owners,
    times; ``shared`` what reaches processes outside that no namespace hides.
    """

    families: tuple[int, ...] = ()
    attributes: bool = False
    shared: bool = False


@cache
def assemble(wanted: Filter, machine: str | None = None) -> bytes:
    """The filter as the kernel takes it, for this machine or another.

    Raises ``OSError`` for an architecture that the table lacks.
    """
    known = machine or platform.machine()
    if known not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {known}")
    arch, column = ARCHITECTURES[known]
    refused = ALWAYS | (ATTRIBUTES if wanted.attributes else {}) | (SHARED if wanted.shared else {})
    numbers = [each[column] for each in refused.values()]
    steps = [
        _step(_LOAD, _ARCH),
        *_unless(_EQUAL, arch, [_step(_RETURN, _KILL)]),
        _step(_LOAD, _NUMBER),
        *([] if column else _when(_AT_LEAST, _X32, [_refuse()])),
        *_clone(column),
        *_sockets(column, wanted.families),
        *_when(_EQUAL, (16, 29)[column], _ioctls(wanted)),
    ]
    for number in numbers:
        if number is not None:
            steps += _when(_EQUAL, number, [_refuse()])
    for name, row in OTHERS.items() if wanted.shared else ():
        steps += _when(_EQUAL, row[column], _of_caller(row[2], OF_USER.get(name)))
    return b"".join([*steps, _allow()])


def _clone(column: int) -> list[bytes]:
    """Namespaces are refused; clone3, which no filter can read, is said not to be there."""
    body = [_argument(0), _step(_AND, _NAMESPACES), *_unless(_EQUAL, 0, [_refuse()]), _allow()]
    missing = [_step(_RETURN, _ERRNO | errno.ENOSYS)]
    return _when(_EQUAL, (56, 220)[column], body) + _when(_EQUAL, 435, missing)


def _sockets(column: int, families: Iterable[int]) -> list[bytes]:
    """Sockets of some families, and pairs that can talk to each other and to nobody else."""
    pair = [_argument(0), *_unless(_EQUAL, socket.AF_UNIX, [_refuse()]), _argument(1)]
    pair += [_step(_AND, 15), *_match(_LOCAL_PAIRS, _allow(), _refuse())]
    sockets = _one_of(0, families, _allow(), _refuse())
    return _when(_EQUAL, (41, 198)[column], sockets) + _when(_EQUAL, (53, 199)[column], pair)


def _ioctls(wanted: Filter) -> list[bytes]:
    """Nothing types into a terminal; nor, where nothing is mounted read-only, changes a file."""
    body = [_argument(1)]
    body += [step for each in _TERMINAL for step in _when(_EQUAL, each, [_refuse()])]
    if wanted.shared:
        harmless = HARMLESS_IOCTLS.values()
        body += [step for each in harmless for step in _when(_EQUAL, each, [_allow()])]
        body += [_step(_AND, 0xFF00), *_match(FILE_IOCTLS, _refuse(), _allow())]
    return [*body, _allow()]


def _of_caller(argument: int, of_user: int | None) -> list[bytes]:
    """The caller itself, and not all that its user runs."""
    body = _one_of(argument, (0,), _allow(), _refuse())
    if of_user is None:
        return body
    return [_argument(0), *_when(_EQUAL, of_user, [_refuse()]), *body]


def _one_of(argument: int, values: Iterable[int], then: bytes, other: bytes) -> list[bytes]:
    return [_argument(argument), *_match(values, then, other)]


def _match(values: Iterable[int], then: bytes, other: bytes) -> list[bytes]:
    return [step for value in values for step in _when(_EQUAL, value, [then])] + [other]


def _when(test: int, value: int, body: list[bytes]) -> list[bytes]:
    """Steps that are taken if the test holds; the last of them returns."""
    return [_step(test, value, 0, len(body)), *body]


def _unless(test: int, value: int, body: list[bytes]) -> list[bytes]:
    return [_step(test, value, len(body), 0), *body]


def _argument(index: int) -> bytes:
    """Load the low half of an argument: these calls take ints."""
    return _step(_LOAD, _ARGS + 8 * index)


def _allow() -> bytes:
    return _step(_RETURN, _ALLOW)


def _refuse() -> bytes:
    return _step(_RETURN, _ERRNO | errno.EPERM)


def _step(code: int, value: int, then: int = 0, other: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, other, value)
