"""Models over HTTP: one client, its patience, its retries and its faults, for every wire."""

from __future__ import annotations

from crow.llm.http.model import HttpModel, Options
from crow.llm.http.retry import NO_RETRIES, Retries, Timeouts

__all__ = ["NO_RETRIES", "HttpModel", "Options", "Retries", "Timeouts"]
