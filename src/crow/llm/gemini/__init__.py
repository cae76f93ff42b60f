"""Gemini models over Google's own protocol: generateContent, streamed."""

from __future__ import annotations

from crow.llm.gemini.generate import Gemini

__all__ = ["Gemini"]
