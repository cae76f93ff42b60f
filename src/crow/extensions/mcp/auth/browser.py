"""Opening a page, where there is a screen for it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")


def open_page(url: str) -> bool:
    """Show a page in the user's browser, beside all else; False where there can be none.

    The standard library knows the browsers; in a process of its own, none of them writes into the
    terminal or holds anything up.
    """
    if not (os.name == "nt" or sys.platform == "darwin" or any(map(os.environ.get, SCREENS))):
        return False
    with suppress(OSError):
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(
            [sys.executable, "-m", "webbrowser", url],
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
        )
        threading.Thread(target=process.wait, daemon=True).start()  # a browser may stay for long
        return True
    return False
