"""Spans and metrics of OpenTelemetry, by its conventions for generative AI."""

from __future__ import annotations

from crow.extensions.telemetry.hook import TelemetryHook, TelemetryOptions

__all__ = ["TelemetryHook", "TelemetryOptions"]
