"""Fixtures for pytest: ``pytest_plugins = ["crow.testing.plugin"]`` in a conftest.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crow.testing.model import ScriptedModel


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedModel]]:
    """Makes scripted models, and verifies at the end of the test that each played its script."""
    models: list[ScriptedModel] = []

    def make(*script: Any, **options: Any) -> ScriptedModel:
        models.append(ScriptedModel(*script, **options))
        return models[-1]

    yield make
    for model in models:
        model.verify()
