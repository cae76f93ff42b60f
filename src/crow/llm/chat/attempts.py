"""Asking again at once where an endpoint refused nothing but the form of a request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import replace

from crow.core.errors import ModelError
from crow.core.events import Retrying
from crow.llm.chat.form import Form
from crow.llm.chat.retry import Batch


class Forms:
    """The form in which an endpoint last answered, and the images that it has taken."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._taken: set[int] = set()

    async def ask(
        self,
        origin: str,
        answer: Callable[[Form], AsyncGenerator[Batch, None]],
        images: Callable[[], AbstractSet[int]],
    ) -> AsyncGenerator[Batch, None]:
        """The batches of the first attempt that is not refused, in milder form after milder form.

        ``answer`` makes an attempt, ``images`` gives the hashes of the images in the request.
        Raises `ModelError`.
        """
        form = replace(self.form, origin=origin)
        while True:
            answered = False
            try:
                async with aclosing(answer(form)) as batches:
                    async for batch in batches:
                        if not answered:
                            answered = True
                            self.form = form
                            self._taken |= images() - form.refused
                        yield batch
            except ModelError as error:
                suspects = frozenset(images() - self._taken)
                milder = None if answered else form.milder(error, suspects)
                if milder is None:
                    raise
                fault = error
            else:
                return
            if milder.shows_less(form):
                yield [Retrying(1, 0.0, f"an image was refused, and is left out: {fault}")]
            form = milder
