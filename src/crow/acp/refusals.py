"""Why a request is refused, in the protocol's words."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from crow.acp.jsonrpc import AUTH_REQUIRED, INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, Refusal
from crow.core.errors import SessionError, SessionInUse

T = TypeVar("T")


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
    return Refusal(INVALID_REQUEST, details, details)


def not_found(details: str) -> Refusal:
    """The refusal for a session that cannot be had."""
    return Refusal(NOT_FOUND, "Resource not found", details)


def invalid(details: str) -> Refusal:
    """The refusal for parameters that make no sense here."""
    return Refusal(INVALID_PARAMS, "Invalid params", details)


def unauthenticated(details: str) -> Refusal:
    """The refusal for what needs credentials where there are none."""
    return Refusal(AUTH_REQUIRED, "Authentication required", details)
