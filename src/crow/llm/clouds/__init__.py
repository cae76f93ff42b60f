"""Clouds that serve models of others: where one is, and who vouches for requests without a key.

Each is a module with two functions: ``places`` gives what stands in braces in the URLs of its
preset, ``credentials`` the options of a model whose requests its own library vouches for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, cast

from crow.core.errors import ModelError
from crow.llm.presets import Preset


class Cloud(Protocol):
    """The module of one cloud."""

    def places(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """What stands in braces in the URLs. Raises `ModelError` (unconfigured)."""
        ...

    def credentials(self, url: str, env: Mapping[str, str]) -> Mapping[str, Any]:
        """Options of `HttpModel` for a model at ``url``. Raises `ModelError` (unconfigured)."""
        ...


def cloud_of(preset: Preset) -> Cloud:
    """The cloud that a preset names."""
    return cast("Cloud", import_module(f"{__name__}.{preset.cloud}"))


def located(preset: Preset, env: Mapping[str, str]) -> Preset:
    """A cloud's preset with its URLs as they are. Raises `ModelError` (unconfigured)."""
    if "{" not in preset.base_url:
        return preset
    places = cloud_of(preset).places(env)
    urls = {wire: url.format(**places) for wire, url in (preset.urls or {}).items()}
    return replace(preset, base_url=preset.base_url.format(**places), urls=urls)


def has(module: str) -> bool:
    """Whether a library is installed."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it is in
        return False


def require(module: str, extra: str, otherwise: str) -> None:
    """Refuse where a library is missing. Raises `ModelError` (unconfigured)."""
    if not has(module):
        what = f"{extra} needs a library for its credentials: pip install 'crow-acp[{extra}]'"
        raise ModelError(f"{what}, or {otherwise}", kind="unconfigured")
