"""Conversations that other programs wrote down, as the lines in which Crow exports its own.

The readers know Claude Code's transcripts, Codex' rollouts and ATIF trajectories. What a file
cannot tell is left out: nothing is made up.
"""

from __future__ import annotations

from crow.transcripts.reading import Transcript, UnknownTranscriptError, read

__all__ = ["Transcript", "UnknownTranscriptError", "read"]
