"""Errors of the protocol: why a client's request is refused, and what it answers to one of ours."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar

from crow.acp.jsonrpc import (
    AUTH_REQUIRED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    Message,
    as_object,
)
from crow.core.errors import SessionError, SessionInUse

T = TypeVar("T")
REFUSED = ("denied", "not permitted", "not allowed", "forbidden", "refused", "rejected", "outside")


class Refusal(Exception):  # noqa: N818 - it says no, and that is the answer
    """The reason why a request is answered with an error; ``data`` goes along with it."""

    def __init__(self, code: int, text: str, **data: Any) -> None:
        super().__init__(text)
        self.code = code
        self.data = data


class ClientError(OSError):
    """The client answered a request with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    @classmethod
    def of(cls, error: Message) -> ClientError:
        """The ``error`` of an answer; many clients say it in its data, below an empty title."""
        details = as_object(error.get("data")).get("details")
        text = error["message"]
        return cls(error["code"], f"{text}: {details}" if isinstance(details, str) else text)

    @property
    def is_unknown_method(self) -> bool:
        """True where the client does not know the method at all."""
        return self.code == METHOD_NOT_FOUND

    @property
    def is_not_found(self) -> bool:
        """True where the client has no such file."""
        text = str(self).lower()
        return self.code == NOT_FOUND or "not found" in text or "no such file" in text

    @property
    def is_refusal(self) -> bool:
        """True where the client, or its user, does not want it; the protocol has no code for it."""
        text = str(self).lower()
        return any(word in text for word in REFUSED)


async def found(looking: Awaitable[T]) -> T:
    """What is looked for, or the refusal that says that it cannot be had."""
    try:
        return await unused(looking)
    except SessionError as error:
        raise not_found(str(error)) from error


async def unused(work: Awaitable[T]) -> T:
    """What comes of work on a session, or the refusal that says who has it open."""
    try:
        return await work
    except SessionInUse as error:
        raise in_use(str(error)) from error


def in_use(details: str) -> Refusal:
    """The refusal for a session that somebody else has.

    It is there, so "not found" will not do: clients forget such a session, or open another one in
    its place. Many show no more of an error than its message, so that says it all.
    """
    return Refusal(INVALID_REQUEST, details, details=details)


def not_found(details: str) -> Refusal:
    """The refusal for a session that cannot be had."""
    return Refusal(NOT_FOUND, "Resource not found", details=details)


def unknown_method(**data: str) -> Refusal:
    """The refusal for a method that is not there, or not on offer."""
    return Refusal(METHOD_NOT_FOUND, "Method not found", **data)


def invalid(details: str) -> Refusal:
    """The refusal for parameters that make no sense here."""
    return Refusal(INVALID_PARAMS, "Invalid params", details=details)


def unauthenticated(details: str) -> Refusal:
    """The refusal for what needs credentials where there are none."""
    return Refusal(AUTH_REQUIRED, "Authentication required", details=details)
