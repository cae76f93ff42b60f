"""The version as a constant: reading it from the installed metadata would cost 40 ms of import."""

from __future__ import annotations

__version__ = "0.1.0"
