"""Child processes: started in sessions of their own, ended with all that they have started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crow._lazy import lazy

if TYPE_CHECKING:
    from crow.process.child import ChildProcess as ChildProcess
    from crow.process.child import each_process as each_process
    from crow.process.child import python_cache_env as python_cache_env
    from crow.process.environment import is_secret as is_secret
    from crow.process.finished import Finished as Finished
    from crow.process.finished import run as run
    from crow.process.mark import MARK as MARK
    from crow.process.mark import limit_of as limit_of
    from crow.process.mark import mark_of as mark_of
    from crow.process.reaper import ProcessReaper as ProcessReaper

_ROOMS = {
    "crow.process.child": "ChildProcess each_process python_cache_env",
    "crow.process.environment": "is_secret",
    "crow.process.finished": "Finished run",
    "crow.process.mark": "MARK limit_of mark_of",
    "crow.process.reaper": "ProcessReaper",
}

if not TYPE_CHECKING:  # a checker takes any name for there where it sees one
    __all__, __getattr__, __dir__ = lazy(__name__, _ROOMS)
