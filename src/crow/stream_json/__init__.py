"""The protocol of ``claude -p``: a program drives a session by lines of JSON.

It is what ``--output-format stream-json`` and ``--input-format stream-json`` mean to Claude Code:
libraries that drive it drive Crow as well.
"""

from __future__ import annotations
