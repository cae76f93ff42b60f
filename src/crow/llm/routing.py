"""Several models behind one: a request that names another model goes to that model's endpoint."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from crow.core.ports import LLM, Completion, Delta, Request


class Routed:
    """An LLM that stands for all that ``find`` knows, each made when it is first asked.

    ``find(None)`` makes the model of requests that name none, ``find("ollama/qwen3")`` another;
    it raises `ModelError` where there is none.
    """

    def __init__(self, find: Callable[[str | None], LLM]) -> None:
        self._find = find
        self._found: dict[str | None, LLM] = {}

    @property
    def first(self) -> LLM:
        """The model of requests that name none. Raises `ModelError` where none can be had."""
        if None not in self._found:
            self._found[None] = self._find(None)
        return self._found[None]

    @property
    def model(self) -> str:
        """The first model's name."""
        return self.first.model

    @property
    def context_window(self) -> int | None:
        """The first model's window, in tokens."""
        return self.first.context_window

    def named(self, model: str) -> LLM:
        """The LLM of a name. Raises `ModelError` (unconfigured) where there is none."""
        if model == self.first.model:
            return self.first
        if model not in self._found:
            self._found[model] = self._find(model)
        return self._found[model]

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Completion, None]:
        """Ask the model that the request names."""
        llm = self.first
        if request.model is not None:
            llm, request = self.named(request.model), replace(request, model=None)
        async with aclosing(llm.stream(request)) as deltas:
            async for delta in deltas:
                yield delta

    async def aclose(self) -> None:
        """Close what the models hold open."""
        for llm in self._found.values():
            close = getattr(llm, "aclose", None)
            if close is not None:
                await close()
