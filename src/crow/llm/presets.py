"""Well-known providers and local servers: where they are, and which variable holds their key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from crow.core.support.frozen import frozen


@frozen
class Preset:
    """An endpoint. ``key_names`` are variables that may hold its key.

    ``url_name`` is a variable that says where it is instead; ``url_path`` is what such a URL goes
    on with where it has no path. ``key_header`` carries the key where that is not the wire's own
    way. ``families`` are beginnings of names of models that mean this provider where none is named.
    ``wire`` is what its models are asked by that are not in the table (`crow.llm.models`),
    ``urls`` where wires are that are not at ``base_url``, ``thinking`` how its servers have
    thinking switched (`crow.llm.models.THINKING`), whatever the model is; ``hands_on`` that it
    hands requests on to others, ``lists`` that it says which models there are. ``cloud`` is the
    module of `crow.llm.clouds` that has credentials where there is no key, and what stands in
    braces in the URLs; the models there are those of their makers. The rest is as `ChatCompletions`
    has it.
    """

    base_url: str
    key_names: tuple[str, ...] = ()
    url_name: str | None = None
    url_path: str = "/v1"
    key_header: str = ""
    families: tuple[str, ...] = ()
    wire: str = "chat"
    urls: Mapping[str, str] | None = None
    thinking: str = ""
    echo_reasoning: bool = False
    images_in_results: bool = False
    cache_key: str | None = None
    hands_on: bool = False
    lists: bool = True
    cloud: str = ""

    @property
    def is_local(self) -> bool:
        """True for a server on this machine, which needs no key."""
        return self.base_url.startswith("http://localhost:")

    @property
    def models_url(self) -> str:
        """Where its list of models is, without ``/models``."""
        return self.url_of("chat")

    def url_of(self, wire: str) -> str:
        """Where a wire is."""
        return (self.urls or {}).get(wire, self.base_url)

    @property
    def is_own_server(self) -> bool:
        """True for one that has its models itself, with windows as it likes."""
        return self.is_local and not self.hands_on


def _local(port: int, url_name: str | None = None, **options: Any) -> Preset:
    return Preset(f"http://localhost:{port}/v1", url_name=url_name, **options)


BEDROCK = "https://bedrock-mantle.{region}.api.aws"
VERTEX = "https://{host}/v1/projects/{project}/locations/{location}"

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "openai": Preset(
            "https://api.openai.com/v1",
            ("OPENAI_API_KEY",),
            url_name="OPENAI_BASE_URL",
            families=("gpt-", "chatgpt-", "codex-", "o1", "o3", "o4"),
            wire="responses",
            cache_key="prompt_cache_key",
        ),
        "anthropic": Preset(
            "https://api.anthropic.com/v1",
            ("ANTHROPIC_API_KEY",),
            url_name="ANTHROPIC_BASE_URL",
            families=("claude-",),
            wire="messages",
        ),
        "google": Preset(
            "https://generativelanguage.googleapis.com/v1beta",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            families=("gemini-", "gemma-"),
            wire="gemini",
            urls={"chat": "https://generativelanguage.googleapis.com/v1beta/openai"},
        ),
        "openrouter": Preset("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
        "azure": Preset(
            "",
            ("AZURE_OPENAI_API_KEY",),
            url_name="AZURE_OPENAI_ENDPOINT",
            url_path="/openai/v1",
            key_header="api-key",
            lists=False,  # it says what can be deployed, and not what is
            wire="responses",
        ),
        "bedrock": Preset(
            f"{BEDROCK}/v1",
            ("AWS_BEARER_TOKEN_BEDROCK",),
            urls={"messages": f"{BEDROCK}/anthropic/v1", "responses": f"{BEDROCK}/openai/v1"},
            lists=False,  # signed requests only, and of models that the account may not use
            cloud="bedrock",
        ),
        "vertex": Preset(
            f"{VERTEX}/endpoints/openapi",
            urls={
                "gemini": f"{VERTEX}/publishers/google",
                "messages": f"{VERTEX}/publishers/anthropic",
            },
            lists=False,
            cloud="vertex",
        ),
        "mistral": Preset(
            "https://api.mistral.ai/v1",
            ("MISTRAL_API_KEY",),
            families=(
                "mistral-",
                "ministral-",
                "magistral-",
                "codestral-",
                "devstral-",
                "pixtral-",
            ),
            images_in_results=True,
        ),
        "deepseek": Preset(
            "https://api.deepseek.com/v1",
            ("DEEPSEEK_API_KEY",),
            families=("deepseek-",),
            echo_reasoning=True,
        ),
        "xai": Preset(
            "https://api.x.ai/v1", ("XAI_API_KEY",), families=("grok-",), wire="responses"
        ),
        "moonshot": Preset(
            "https://api.moonshot.ai/v1",
            ("MOONSHOT_API_KEY",),
            families=("kimi-", "moonshot-"),
            echo_reasoning=True,
        ),
        "zai": Preset(
            "https://api.z.ai/api/paas/v4",
            ("ZAI_API_KEY",),
            families=("glm-",),
            echo_reasoning=True,
        ),
        "qwen": Preset(
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            ("DASHSCOPE_API_KEY",),
            families=("qwen-", "qwen3-", "qwq-"),
        ),
        "groq": Preset("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
        "together": Preset("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
        "fireworks": Preset("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
        "cerebras": Preset("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
        "perplexity": Preset("https://api.perplexity.ai", ("PERPLEXITY_API_KEY",)),
        "nvidia": Preset("https://integrate.api.nvidia.com/v1", ("NVIDIA_API_KEY",)),
        "huggingface": Preset("https://router.huggingface.co/v1", ("HF_TOKEN",)),
        "litellm": _local(
            4000, "LITELLM_PROXY_API_BASE", key_names=("LITELLM_PROXY_API_KEY",), hands_on=True
        ),
        "ollama": _local(11434, "OLLAMA_HOST", thinking="effort"),
        "llamacpp": _local(8080, echo_reasoning=True, thinking="template"),
        "lmstudio": _local(1234),
        "vllm": _local(8000, thinking="template"),
    }
)

OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "gemini": "google",
        "kimi": "moonshot",
        "z.ai": "zai",
        "z-ai": "zai",
        "x-ai": "xai",
        "grok": "xai",
        "llama.cpp": "llamacpp",
        "llama-cpp": "llamacpp",
        "lm-studio": "lmstudio",
        "dashscope": "qwen",
        "alibaba": "qwen",
        "hf": "huggingface",
        "azure-openai": "azure",
        "aws": "bedrock",
        "amazon-bedrock": "bedrock",
        "vertexai": "vertex",
        "vertex-ai": "vertex",
        "google-vertex": "vertex",
    }
)

KEY_NAMES = frozenset({"CROW_API_KEY"}.union(*[each.key_names for each in PRESETS.values()]))
"""Every variable that holds a key for a model."""


def provider_meant(name: str) -> str | None:
    """The provider whose models have names that begin like this one; None where none has."""
    lower = name.lower()
    return next((key for key, each in PRESETS.items() if lower.startswith(each.families)), None)
