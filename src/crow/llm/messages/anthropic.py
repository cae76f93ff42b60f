"""A model behind an endpoint that speaks Anthropic's Messages protocol."""

from __future__ import annotations

from typing import Unpack

from crow.llm.http import HttpModel, Options
from crow.llm.http.request_format import RequestFormat
from crow.llm.messages.wire import MessagesWire
from crow.llm.models import model_info

ANTHROPIC = "https://api.anthropic.com/v1"
VERTEX = "/publishers/anthropic"
BETA = "anthropic-beta"
OAUTH = "oauth-2025-04-20"
TOKEN = "sk-ant-oat"  # noqa: S105 - how they begin
"""How a token begins that a login gave, and that is no API key."""


def AnthropicMessages(  # noqa: N802 - who makes one makes a model
    model: str,
    base_url: str = ANTHROPIC,
    api_key: str | None = None,
    *,
    bearer: bool = False,
    cache_ttl: str | None = None,
    max_output_tokens: int | None = None,
    **options: Unpack[Options],
) -> HttpModel:
    """An LLM. ``base_url`` is what stands before ``/messages``; see `HttpModel`.

    The key goes into ``x-api-key``; with ``bearer``, or where it is a token of Anthropic's login,
    it is a bearer's. At Vertex AI the URL ends in ``/publishers/anthropic``, the key is an access
    token, and the request is put as it is wanted there. An answer has at most
    ``max_output_tokens``; without them it is what the model can, and no more than a sixth of its
    window. ``cache_ttl`` (``5m``, ``1h``) is how long the endpoint keeps a prefix in its cache.
    Betas that ``headers`` has in ``anthropic-beta`` stay, and the ones that a request needs stand
    beside them. What an endpoint refuses of thoughts, of marks for its cache and the like, it is
    not sent again.
    """
    headers = {name.lower(): value for name, value in (options.get("headers") or {}).items()}
    betas = [each.strip() for each in headers.pop(BETA, "").split(",")]
    at_vertex = base_url.rstrip("/").endswith(VERTEX)
    if (api_key or "").startswith(TOKEN):
        bearer = True
        betas.append(OAUTH)
    info = options.setdefault("info", model_info("anthropic", model))
    wire = MessagesWire(
        info,
        bearer=bearer or at_vertex,
        at_vertex=at_vertex,
        betas=filter(None, betas),
        cache_ttl=cache_ttl,
        max_output_tokens=max_output_tokens,
    )
    options["headers"] = headers
    form = RequestFormat(images_in_results=True)
    return HttpModel(wire, model, base_url, api_key, form=form, **options)
