"""Output styles: how the agent talks, by name."""

from __future__ import annotations

from crow.extensions.output_styles.hook import OutputStylesHook
from crow.extensions.output_styles.style import Style

__all__ = ["OutputStylesHook", "Style"]
