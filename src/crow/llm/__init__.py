"""Models, each an LLM."""
