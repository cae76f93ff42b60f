"""Conversations that other programs wrote down, as the lines in which Crow exports its own.

They read transcripts of Claude Code, rollouts of Codex, sessions of pi and opencode, ATIF
trajectories and traces in OTLP. What a file cannot tell is left out: nothing is made up.
"""

from __future__ import annotations

from crow.transcripts.reading import Transcript, UnknownTranscriptError, read

__all__ = ["Transcript", "UnknownTranscriptError", "read"]
