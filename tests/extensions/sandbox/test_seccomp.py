"""The table of system calls against the kernel's own, and what the filter made of it answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.extensions.sandbox.test_rings import play

from crow.extensions.sandbox import landlock
from crow.extensions.sandbox.seccomp import ALWAYS, ATTRIBUTES, OTHERS, SHARED, Filter, assemble

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),  # which is arm64's
}
DEFINED = re.compile(r"#define __NR(?:3264)?_(\w+)\s+(\d+)")
LATER = {"fchmodat2", "setxattrat", "removexattrat", "open_tree_attr", "file_setattr"}
"""Calls that headers of some years ago lack; all architectures number them alike."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050001
IOCTL = {"x86_64": 16, "aarch64": 29}


def numbers(column: int) -> dict[str, int | None]:
    """All that the sandbox calls or refuses by number."""
    machine = ("x86_64", "aarch64")[column]
    rows = {name: row[column] for name, row in (ALWAYS | ATTRIBUTES | SHARED | OTHERS).items()}
    own = {"clone": (56, 220), "clone3": (435, 435), "socket": (41, 198), "socketpair": (53, 199)}
    rows |= {name: row[column] for name, row in own.items()}
    rows |= {"ioctl": IOCTL[machine]}
    rows |= {"landlock_create_ruleset": landlock._CREATE}  # pyright: ignore[reportPrivateUsage]
    rows |= {"landlock_add_rule": landlock._ADD}  # pyright: ignore[reportPrivateUsage]
    rows |= {"landlock_restrict_self": landlock._RESTRICT}  # pyright: ignore[reportPrivateUsage]
    rows |= {"seccomp": landlock._SECCOMP[machine]}  # pyright: ignore[reportPrivateUsage]
    return rows | {"capset": landlock._SET_CAPABILITIES[machine]}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_of_system_calls_are_the_kernels(machine: str) -> None:
    header = HEADERS[machine]
    if not header.is_file():
        pytest.skip("the kernel's headers are not installed (linux-libc-dev)")
    kernels = {name: int(number) for name, number in DEFINED.findall(header.read_text())}
    ours = numbers([*HEADERS].index(machine))
    known = {name: kernels.get(name) for name in ours if name in kernels or name not in LATER}
    assert {name: ours[name] for name in known} == known
    assert len(known) >= 78


def test_later_calls_have_one_number_everywhere() -> None:
    rows = ALWAYS | ATTRIBUTES
    assert {rows[name] for name in LATER} == {(n, n) for n in (452, 463, 466, 467, 469)}


@pytest.mark.parametrize("machine", HEADERS)
def test_files_are_not_changed_by_an_ioctl_where_no_mount_forbids_it(machine: str) -> None:
    code = assemble(Filter(shared=True), machine)
    changing = (
        0x40086602,
        0x401C5820,
        0x40087602,
        0x40806685,
        0x5000940E,
        0x100000000 | 0x40086602,
    )
    for number in changing:
        assert play(code, IOCTL[machine], machine, 3, number) == REFUSE
    reading = (0x80086601, 0xC020660B, 0x40049409, 0x5401, 0x5421, 0x541B)
    for number in reading:
        assert play(code, IOCTL[machine], machine, 3, number) == ALLOW
    mounted = assemble(Filter(), machine)
    assert play(mounted, IOCTL[machine], machine, 3, 0x40086602) == ALLOW
    assert play(mounted, IOCTL[machine], machine, 3, 0x5412) == REFUSE


@pytest.mark.parametrize("machine", HEADERS)
def test_a_priority_is_the_callers_own_and_not_all_of_its_users(machine: str) -> None:
    code = assemble(Filter(shared=True), machine)
    column = [*HEADERS].index(machine)
    for name, of_user in (("setpriority", 2), ("ioprio_set", 3)):
        number = OTHERS[name][column]
        assert play(code, number, machine, 0, 0, 5) == ALLOW
        assert play(code, number, machine, 0, 77, 5) == REFUSE
        assert play(code, number, machine, of_user, 0, 5) == REFUSE
