"""Models and what is known of them, as data: a file a provider, read when first asked for."""

from __future__ import annotations

from crow.llm.models.info import (
    BUDGETS,
    FEATURES,
    LEVELS,
    REFUSALS,
    THINKING,
    UNKNOWN,
    WIRES,
    ModelInfo,
    Prices,
)
from crow.llm.models.table import known_models, model_info, newest

__all__ = [
    "BUDGETS",
    "FEATURES",
    "LEVELS",
    "REFUSALS",
    "THINKING",
    "UNKNOWN",
    "WIRES",
    "ModelInfo",
    "Prices",
    "known_models",
    "model_info",
    "newest",
]
