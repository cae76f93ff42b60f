"""Names of the conventions for generative AI, and how Crow's words are said in theirs.

They follow the repository semantic-conventions-genai at 32c328e (November 2026), after the last
release within the general conventions, 1.41. All of them are in development, so there is no schema
to name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from crow import LLM
from crow.ports import url_of

CONVERSATION = "gen_ai.conversation.id"
OPERATION = "gen_ai.operation.name"
PROVIDERS = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "claude": "anthropic",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "gpt": "openai",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "cache_read.input_tokens",
    "cache_write_tokens": "cache_write.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
}
"""Our names of tokens, and those behind ``gen_ai.usage.``."""
PARAMS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "reasoning_effort": "gen_ai.request.reasoning.level",
}
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)


def provider_of(model: str, llm: LLM | None) -> str:
    """The provider of a model, as the conventions call it; its own name where they do not."""
    first = model.partition("/")[0] if "/" in model else model.partition("-")[0]
    host = urlsplit(url_of(llm)).hostname if llm else None
    return PROVIDERS.get(first) or ("/" in model and first) or host or "crow"


def server_of(llm: LLM | None) -> Iterator[tuple[str, Any]]:
    """The address of a model's endpoint."""
    parts = urlsplit(url_of(llm)) if llm else None
    if parts is not None and parts.hostname:
        yield "server.address", parts.hostname
        yield "server.port", parts.port or (443 if parts.scheme == "https" else 80)


def usage_of(usage: Mapping[str, Any] | None) -> dict[str, int]:
    """Tokens by the names that stand behind ``gen_ai.usage.``."""
    told = usage or {}
    return {theirs: told[ours] for ours, theirs in USAGE.items() if ours in told}


def error_of(error: BaseException) -> str:
    """What sort of error it is: a model's in its own words, any other by its class."""
    return str(getattr(error, "kind", "") or type(error).__qualname__)
