"""Models behind OpenAI's Responses protocol, streamed, nothing stored at the endpoint."""

from __future__ import annotations

from crow.llm.responses.model import Responses

__all__ = ["Responses"]
