"""The format of requests that one endpoint takes: thoughts, images and options.

A history is the same for all models. What only its maker understands (signatures, encrypted
thoughts) goes back to nobody else, and an image is a line of text for a model that sees none.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeAlias

from crow.core.errors import ModelError
from crow.core.events import Retrying
from crow.core.messages import ImagePart, Message
from crow.core.support.frozen import frozen
from crow.llm.http.retry import Batch

PICTURE = r"(?:image|vision|multi.?modal)(?!.{0,12}(?:format|type|size|url))"
BLIND = (
    r"(?i)unknown variant|mmproj|no endpoints? found|text.only|content.{0,30}string"
    rf"|(?:not|n't) (?:support|accept|take)[^.]{{0,20}}{PICTURE}"
    rf"|{PICTURE}[^.]{{0,20}}(?:not|n't)[^.]{{0,10}}support"
)
OF_IMAGES = r"(?i)image|vision|mmproj|multi.?modal|modalit|content.{0,30}string"
REFUSALS = frozenset({400, 404, 413, 415, 422, 500, 501})
MOVED = "[an image: it is in the next message]"
DOUBTS = 3
"""How often an endpoint may refuse thoughts until it gets none any more."""
SHOWN = "What the tools above returned as images:"


@frozen
class RequestFormat:
    """The format of what an endpoint is sent.

    ``origin`` names it and the model: fields of that origin go back as they came, if it takes
    such ``thoughts``, and but for the messages in ``distrusted`` (their keys), whose thoughts it
    has refused; ``doubts`` says that it has refused some just now, ``doubted`` how often before.
    ``echoes`` is for endpoints that want everybody's reasoning, and a field for
    it in every message with calls. ``images`` says that the model sees; without
    ``images_in_results`` the images of a tool go into a message behind the last result. Those in
    ``refused`` (hashes of their addresses) are not sent. ``usage`` asks for the tokens. ``ids`` is
    the longest that ids of calls may be, 0 for any; ``answered`` says that the assistant has to
    speak between a tool and the user. ``without`` names what else an endpoint refuses, in the words
    of its wire.
    """

    origin: str = ""
    echoes: bool = False
    thoughts: bool = True
    distrusted: frozenset[int] = frozenset()
    doubts: bool = False
    doubted: int = 0
    images: bool = True
    images_in_results: bool = False
    refused: frozenset[int] = frozenset()
    usage: bool = True
    ids: int = 0
    answered: bool = False
    without: frozenset[str] = frozenset()

    @property
    def model(self) -> str:
        """The model's name in ``origin``."""
        return self.origin.partition(" ")[2]

    def trusts(self, message: Message) -> bool:
        """Whether what was thought for a message goes back to who thought it."""
        return self.thoughts and not (self.distrusted and key_of(message) in self.distrusted)

    def distrusting(self, messages: Sequence[Message]) -> RequestFormat | None:
        """The form without the thoughts of these messages, which were refused; None without any.

        An endpoint that refuses thoughts again and again gets none any more.
        """
        keys = self.distrusted.union(
            key_of(each) for each in messages if each.get("output_items") is not None
        )
        if keys == self.distrusted:
            return None
        thoughts = self.thoughts and self.doubted < DOUBTS
        count = self.doubted + 1
        return replace(self, doubts=False, doubted=count, distrusted=keys, thoughts=thoughts)

    def without_images(self, error: ModelError, images: frozenset[int]) -> RequestFormat | None:
        """The form without the images that an endpoint has just refused; None where it has not.

        ``images`` are those in the request that no endpoint has taken before.
        """
        said = said_in(error)
        if not self.images or not images - self.refused:
            return None
        if re.search(OF_IMAGES, said) and re.search(BLIND, said):
            return replace(self, images=False)
        sure = (error.status or 500) < 500  # a server's own failure must speak of images
        return (
            replace(self, refused=self.refused | images)
            if sure or re.search(OF_IMAGES, said)
            else None
        )

    def shows_less(self, other: RequestFormat) -> bool:
        """Whether images are left out that another form has."""
        return (self.images, self.refused) != (other.images, other.refused)

    def shows(self, part: ImagePart) -> bool:
        """Whether an image is sent."""
        return self.images and hash(part["image_url"]["url"]) not in self.refused

    def left_out(self, part: ImagePart) -> str:
        """The line that stands in the place of an image that is not sent."""
        why = "the endpoint refused it" if self.images else "this model takes no images"
        return f"[{_described(part)}: left out, because {why}]"


def key_of(message: Message) -> int:
    """What stands for the items that a message came as."""
    return hash(repr(message.get("output_items")))


def said_in(error: ModelError) -> str:
    """All that an endpoint said where it refused."""
    return getattr(error, "body", "") or str(error)


Refusal: TypeAlias = "tuple[str, str | Mapping[str, Any]]"
"""What an endpoint says, and the word for what is left out then, or what fields become."""


def without_refused(
    form: RequestFormat, error: ModelError, known: Iterable[Refusal]
) -> RequestFormat | None:
    """The form without what an endpoint has just refused, by the first row that is new.

    None where that cannot be told. Thoughts that are not sent cannot be doubted.
    """
    said = said_in(error)
    for pattern, change in known:
        word = isinstance(change, str)
        less = replace(form, **({"without": form.without | {change}} if word else change))
        if less != form and re.search(pattern, said, re.IGNORECASE):
            return less if form.thoughts or not less.doubts else None
    return None


def images_in(messages: Sequence[Message]) -> set[int]:
    """Hashes of the addresses of all images in some messages."""
    return {
        hash(part["image_url"]["url"])
        for message in messages
        if isinstance(content := message.get("content"), list)
        for part in content
        if part["type"] == "image_url"
    }


def _described(part: ImagePart) -> str:
    url = part["image_url"]["url"]
    if not url.startswith("data:"):
        return f"an image at {url}"
    head, _, data = url.partition(",")
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"an image, {head[5:].partition(';')[0]}, {size} bytes"


Milder: TypeAlias = Callable[[RequestFormat, ModelError], RequestFormat | None]


class RequestFormats:
    """The form in which an endpoint last answered, and the images that it has taken.

    ``milder`` gives the form without what an endpoint has just refused, images aside, or None.
    """

    def __init__(self, form: RequestFormat, milder: Milder) -> None:
        self.form = form
        self._milder = milder
        self._taken: set[int] = set()

    async def ask(
        self,
        origin: str,
        answer: Callable[[RequestFormat], AsyncGenerator[Batch, None]],
        images: Callable[[], AbstractSet[int]],
        messages: Sequence[Message] = (),
    ) -> AsyncGenerator[Batch, None]:
        """The batches of the first attempt that is not refused, in milder form after milder form.

        ``answer`` makes an attempt, ``images`` gives the hashes of the images in the request, whose
        ``messages`` these are. Raises `ModelError`.
        """
        form = self.form if self.form.origin == origin else replace(self.form, origin=origin)
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
                milder = None if answered else self._less(form, error, suspects, messages)
                if milder is None:
                    raise
                fault = error
            else:
                return
            if milder.shows_less(form):
                yield [Retrying(1, 0.0, f"an image was refused, and is left out: {fault}")]
            form = milder

    def _less(
        self,
        form: RequestFormat,
        error: ModelError,
        images: frozenset[int],
        messages: Sequence[Message],
    ) -> RequestFormat | None:
        """The form without what was refused; None where that cannot be told."""
        if error.status is not None and error.status not in REFUSALS:
            return None
        milder = self._milder(form, error) or form.without_images(error, images)
        return milder.distrusting(messages) if milder is not None and milder.doubts else milder
