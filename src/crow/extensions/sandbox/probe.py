"""The probe of back ends on this machine: each is tried with the very line that it will use."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable

from crow.dataclasses import frozen
from crow.extensions.sandbox.backend import Backend, Launch, RememberedBackend, Unconfined
from crow.extensions.sandbox.policy import Policy
from crow.extensions.sandbox.probe_cache import bwrap, remember, remembered
from crow.ports import implements

_SECONDS = 10.0
_ORDER = ("bubblewrap", "landlock", "seatbelt")


@frozen
class ProbeResult:
    """The result of a probe: the back end, or why it does not work."""

    name: str
    backend: Backend | None = None
    why_not: str = ""


def find_backend(wanted: str | None = None, *, anew: bool = False) -> Backend:
    """The best back end that works here, or the one of that name; blocks while it is tried.

    What worked is kept in the user's cache for as long as kernel and bubblewrap stay the same;
    ``anew`` tries again all the same. Raises ``OSError``, with the reason, where the one that is
    wanted does not work.
    """
    if wanted == Unconfined.name:
        return Unconfined()
    if wanted is not None:
        answer = ask(wanted)
        if answer.backend is None:
            raise OSError(f"the sandbox {wanted} does not work here: {answer.why_not}")
        return answer.backend
    if not anew and (known := remembered()) and known.name in _MAKE:
        return _MAKE[known.name](known.about)
    answers = (ask(name) for name in _ORDER)
    backend = next((each.backend for each in answers if each.backend), Unconfined())
    if implements(backend, RememberedBackend):
        remember(backend.name, backend.about)
    return backend


def ask(name: str) -> ProbeResult:
    """Try a back end."""
    if name not in _MAKE:
        return ProbeResult(name, why_not=f"there is none of this name ({', '.join(_ORDER)}, none)")
    try:
        backend = _MAKE[name]("")
        return ProbeResult(name, backend, _try(backend))
    except OSError as error:
        return ProbeResult(name, why_not=error.strerror or str(error))


def everyone() -> list[ProbeResult]:
    """Every back end, tried."""
    return [ask(name) for name in _ORDER]


def _try(backend: Backend) -> str:
    """Run ``true`` in the tighter ring of a back end. Raises ``OSError`` where that fails."""
    policy = Policy("reading", ("/",))
    failed: list[str] = []

    def run(launch: Launch) -> None:
        try:
            if launch.restrict is not None:
                launch.restrict()
            done = subprocess.run(
                launch.argv,
                env=dict(launch.env),
                pass_fds=tuple(launch.pass_fds),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                cwd="/",
            )
        except (OSError, subprocess.SubprocessError) as error:
            failed.append(str(error))
        else:
            text = done.stderr.decode(errors="replace").strip()
            failed.extend([text or f"it ended with {done.returncode}"] if done.returncode else [])

    with backend.confine(["/bin/sh", "-c", "exit 0"], "/", {}, policy) as launch:
        thread = threading.Thread(target=run, args=[launch], name="crow-sandbox-probe")
        thread.start()  # it gives up rights, which this one needs
        thread.join()
    if failed:
        raise OSError(failed[0])
    return ""


# making each


def _bubblewrap(about: str) -> Backend:
    """``about`` is what it said about itself."""
    from crow.extensions.sandbox.bubblewrap import Bubblewrap
    from crow.extensions.sandbox.fifo_guard import find_guard

    if about:
        return Bubblewrap.known(about)
    if sys.platform != "linux":
        raise OSError("it is for Linux")
    program = bwrap()
    if program is None:
        raise OSError("bwrap is not installed (the package is called bubblewrap)")
    told = subprocess.run([program, "--help"], capture_output=True, timeout=_SECONDS, check=False)
    is_old = b"--disable-userns" not in told.stdout
    guarded = Bubblewrap(program, is_old=is_old, perl=find_guard())
    try:
        _try(guarded)
    except OSError:
        return Bubblewrap(program, is_old=is_old)
    return guarded


def _landlock(about: str) -> Backend:
    """``about`` is the version of the kernel's interface."""
    from crow.extensions.sandbox.landlock import Landlock, find_abi

    if about:
        return Landlock(int(about))
    if sys.platform != "linux":
        raise OSError("it is for Linux")
    if platform.machine() not in ("x86_64", "aarch64"):
        raise OSError(f"there is no table of system calls for {platform.machine()}")
    try:
        return Landlock(find_abi())
    except OSError as error:
        raise OSError(f"the kernel does not have it ({error.strerror})") from None


def _seatbelt(about: str) -> Backend:
    from crow.extensions.sandbox.seatbelt import Seatbelt

    if sys.platform != "darwin":
        raise OSError("it is for macOS")
    program = about or "/usr/bin/sandbox-exec"
    if not os.access(program, os.X_OK):
        raise OSError(f"{program} is not there")
    return Seatbelt(program)


def _none(about: str) -> Backend:
    del about
    return Unconfined()


_MAKE: dict[str, Callable[[str], Backend]] = {
    "bubblewrap": _bubblewrap,
    "landlock": _landlock,
    "seatbelt": _seatbelt,
    Unconfined.name: _none,
}
