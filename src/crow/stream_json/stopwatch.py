"""How long the model is asked, and how often."""

from __future__ import annotations

from time import perf_counter


class Stopwatch:
    """Hangs on a session; ``turns`` requests took ``seconds`` so far."""

    def __init__(self) -> None:
        self.turns = 0
        self.seconds = 0.0
        self._began = 0.0

    def on_llm_request(self) -> None:
        """A request leaves."""
        self.turns += 1
        self._began = perf_counter()

    def after_llm_response(self) -> None:
        """Its answer is there."""
        self.seconds += perf_counter() - self._began
