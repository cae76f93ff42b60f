"""The table of escapes, played against every back end of the machine, in both rings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.extensions.sandbox.conftest import BACKENDS, backend

from crow.extensions.sandbox.backend import GUARANTEES, Unconfined
from crow.extensions.sandbox.bubblewrap import Bubblewrap
from crow.extensions.sandbox.escapes import Escape, escapes
from crow.extensions.sandbox.policy import Ring
from crow.extensions.sandbox.testbed import try_out

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the table is of Linux's ways")

ALL = escapes()
QUICK = [each for each in ALL if not each.is_slow]
SLOW = [each for each in ALL if each.is_slow]
HARMLESS = ("write", "secrets", "masked", "survivors", "network", "sockets", "undone", "pipes")
OF_ROOT = ("mount", "chroot", "namespace", "overlay", "pivot", "disk", "memory")
IMPOSSIBLE = """
    /proc/1/root; file handle; stream pair, connect; seqpacket pair, sendto; x32's numbers;
    packet socket; kernel's ciphers; Bluetooth; virtual machine's socket; io_uring;
    UDP over IPv6; fast open; another's terminal multiplexer; bubblewrap inside; TCP over IPv6
"""


def lost(holds: frozenset[str], tried: list[Escape], name: str, ring: Ring) -> list[str]:
    """What came through though it is promised that it does not."""
    outcomes = try_out(backend(name), ring, tried)
    return [
        f"{each.escape.holds}: {each.escape.name}"
        for each in outcomes
        if each.came_through and each.escape.holds in holds
    ]


@pytest.mark.variants(1)
@pytest.mark.parametrize("ring", ["workspace", "reading"])
@pytest.mark.parametrize("name", BACKENDS)
def test_nothing_gets_out_that_a_back_end_promises_to_hold(name: str, ring: Ring) -> None:
    found = backend(name)
    holds = found.holds_reading if ring == "reading" else found.holds
    assert lost(holds, QUICK, name, ring) == []


@pytest.mark.slow
@pytest.mark.parametrize("ring", ["workspace", "reading"])
@pytest.mark.parametrize("name", BACKENDS)
def test_nothing_gets_out_by_a_race(name: str, ring: Ring) -> None:
    found = backend(name)
    holds = found.holds_reading if ring == "reading" else found.holds
    for _ in range(10):
        assert lost(holds, SLOW, name, ring) == []


@pytest.mark.slow
def test_nothing_gets_out_where_a_proxy_lets_some_through() -> None:
    outcomes = try_out(backend("bubblewrap"), "workspace", QUICK, is_online=True)
    assert not [each.escape.name for each in outcomes if each.came_through]


@pytest.mark.slow
def test_a_bubblewrap_that_cannot_forbid_namespaces_holds_by_the_filter_alone() -> None:
    found = backend("bubblewrap")
    assert isinstance(found, Bubblewrap)
    old = Bubblewrap(found.program, is_old=True)
    outcomes = try_out(old, "workspace", QUICK)
    assert {each.escape.holds for each in outcomes if each.came_through} <= {"pipes"}


@pytest.mark.slow
def test_without_a_sandbox_the_same_programs_get_out() -> None:
    """The observer sees what there is to see: a table of programs that cannot fail holds nothing."""
    impossible = {" ".join(name.split()) for name in IMPOSSIBLE.split(";")}
    tried = [
        each
        for each in QUICK
        if each.holds in HARMLESS and not any(word in each.name for word in OF_ROOT)
    ]
    outcomes = try_out(Unconfined(), "workspace", tried)
    held = {each.escape.name for each in outcomes if not each.came_through} - impossible
    assert held <= {"unmount", ".env, archived", "/dev/shm"}
    assert len(outcomes) > 60
    assert not [
        *Path("/tmp").glob(f"crow-{os.getpid()}-*"),
        *Path("/dev/shm").glob(f"crow-{os.getpid()}-*"),
    ]


def test_every_escape_breaks_something_that_is_promised() -> None:
    assert {each.holds for each in ALL} == set(GUARANTEES)
    assert len({(each.holds, each.name) for each in ALL}) == len(ALL) >= 140
    assert all(each.code for each in ALL)
