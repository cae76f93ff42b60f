"""How messages are written for one endpoint: what it takes of thoughts, images and options.

A history is the same for all models. What only its maker understands (signatures, encrypted
thoughts) goes back to nobody else, and an image is a line of text for a model that sees none.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from crow.core.errors import ModelError
from crow.core.events import Retrying
from crow.core.frozen import frozen
from crow.core.messages import ImagePart, Message, TextPart
from crow.llm.chat.opaque import EXTRA, NAMES, TEXTS
from crow.llm.chat.retry import Batch

OWN = NAMES | {"origin"}
MOVED = "[an image: it is in the next message]"
SHOWN = "What the tools above returned as images:"
PICTURE = r"(?:image|vision|multi.?modal)(?!.{0,12}(?:format|type|size|url))"
BLIND = (
    r"(?i)unknown variant|mmproj|no endpoints? found|text.only|content.{0,30}string"
    rf"|(?:not|n't) (?:support|accept|take)[^.]{{0,20}}{PICTURE}"
    rf"|{PICTURE}[^.]{{0,20}}(?:not|n't)[^.]{{0,10}}support"
)
OF_IMAGES = r"(?i)image|vision|mmproj|multi.?modal|modalit|content.{0,30}string"
OF_THOUGHTS = (
    r"(?i)(?:reasoning\w*|extra_content|thinking_blocks)[^.]{0,60}(?:not permitted|unsupported"
    r"|not supported|unknown|unrecogni[sz]ed|not allowed|unexpected|forbidden)"
    r"|(?:unsupported|unknown|unrecogni[sz]ed|unexpected|additional)[^.]{0,60}"
    r"(?:reasoning_|extra_content|thinking_blocks|'reasoning'|\"reasoning\")"
)
REFUSALS = frozenset({400, 404, 413, 415, 422, 500, 501})


@frozen
class Form:
    """What an endpoint is sent.

    ``origin`` names it and the model: fields of that origin go back as they came, if it takes
    such ``thoughts``. ``echoes`` is for endpoints that want everybody's reasoning, and a field for
    it in every message with calls. ``images`` says that the model sees; without
    ``images_in_results`` the images of a tool go into a message behind the last result. Those in
    ``refused`` (hashes of their addresses) are not sent. ``usage`` asks for the tokens.
    """

    origin: str = ""
    echoes: bool = False
    thoughts: bool = True
    images: bool = True
    images_in_results: bool = False
    refused: frozenset[int] = frozenset()
    usage: bool = True

    def write(self, message: Message) -> tuple[Any, list[ImagePart]]:
        """A message as the endpoint gets it, and the images that must follow the tools' results."""
        moved: list[ImagePart] = []
        sent: Any = message
        if message["role"] == "assistant":
            sent = self._said(message)
        elif "written" in message:  # a client's, whoever put it into a request
            sent = {key: value for key, value in message.items() if key != "written"}
        content = message.get("content")
        if isinstance(content, list) and any(part["type"] == "image_url" for part in content):
            moves = message["role"] == "tool" and not self.images_in_results
            sent = {**sent, "content": self._parts(content, moved if moves else None)}
        return sent, moved

    def messages(self, messages: Sequence[Message]) -> list[Any]:
        """All messages as the endpoint gets them."""
        sent: list[Any] = []
        waiting: list[ImagePart] = []
        for message in messages:
            if waiting and message["role"] != "tool":
                sent.append(following(waiting))
                waiting = []
            written, moved = self.write(message)
            sent.append(written)
            waiting += moved
        return [*sent, following(waiting)] if waiting else sent

    def milder(self, error: ModelError, images: frozenset[int]) -> Form | None:
        """The form without what an endpoint has just refused; None where that was something else.

        ``images`` are those in the request that no endpoint has taken before.
        """
        said = getattr(error, "body", "") or str(error)
        if error.status is not None and error.status not in REFUSALS:
            return None
        if self.usage and "stream_options" in said:
            return replace(self, usage=False)
        if self.thoughts and re.search(OF_THOUGHTS, said):
            return replace(self, thoughts=False)
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

    def shows_less(self, other: Form) -> bool:
        """Whether images are left out that another form has."""
        return (self.images, self.refused) != (other.images, other.refused)

    def _said(self, message: Message) -> Any:
        """The assistant's message with its thoughts, or without them."""
        calls: list[Any] = message.get("tool_calls") or []
        mine = self.thoughts and message.get("origin", "-") == self.origin
        signed = not mine and any(EXTRA in call for call in calls)
        lacks = self.echoes and bool(calls) and OWN.isdisjoint(message)
        if not (signed or lacks or not OWN.isdisjoint(message)):
            return message
        sent = {key: value for key, value in message.items() if key not in OWN}
        if signed:
            sent["tool_calls"] = [{k: v for k, v in call.items() if k != EXTRA} for call in calls]
        if mine:
            sent |= {key: value for key, value in message.items() if key in NAMES}
        elif self.echoes and (calls or not NAMES.isdisjoint(message)):
            texts = (cast("dict[str, Any]", message).get(name) for name in TEXTS)
            sent["reasoning_content"] = next(filter(None, texts), "")
        return sent

    def _parts(self, parts: Sequence[Any], moved: list[ImagePart] | None) -> Any:
        """A content's parts; where no image stays among them, as one text."""
        sent: list[Any] = []
        for part in parts:
            if part["type"] != "image_url":
                sent.append(part)
            elif not self._shows(part):
                sent.append(_text(self._left_out(part)))
            elif moved is None:
                sent.append(part)
            else:
                moved.append(part)
                sent.append(_text(MOVED))
        if all(part["type"] == "text" for part in sent):
            return "\n".join(part["text"] for part in sent)
        return sent

    def _shows(self, part: ImagePart) -> bool:
        return self.images and hash(part["image_url"]["url"]) not in self.refused

    def _left_out(self, part: ImagePart) -> str:
        why = "the endpoint refused it" if self.images else "this model takes no images"
        return f"[{_described(part)}: left out, because {why}]"


def images_in(messages: Sequence[Message]) -> set[int]:
    """Hashes of the addresses of all images in some messages."""
    return {
        hash(part["image_url"]["url"])
        for message in messages
        if isinstance(content := message.get("content"), list)
        for part in content
        if part["type"] == "image_url"
    }


def following(images: Sequence[ImagePart]) -> dict[str, Any]:
    """The message that shows what tools returned as images, behind the last of their results."""
    return {"role": "user", "content": [_text(SHOWN), *images]}


def _text(text: str) -> TextPart:
    return {"type": "text", "text": text}


def _described(part: ImagePart) -> str:
    url = part["image_url"]["url"]
    if not url.startswith("data:"):
        return f"an image at {url}"
    head, _, data = url.partition(",")
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"an image, {head[5:].partition(';')[0]}, {size} bytes"


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
